package kube

import (
	"fmt"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// fieldMask says which fields of a message are used, by number, and which of theirs; of a field with a nil mask
// everything is.
type fieldMask map[protowire.Number]fieldMask

// keep appends to out what is used of an encoded message. Most of a Pod is not, and costs more to decode than all the
// rest.
func (m fieldMask) keep(out, message []byte) ([]byte, error) {
	for len(message) > 0 {
		num, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return nil, protowire.ParseError(tag)
		}
		size := protowire.ConsumeFieldValue(num, kind, message[tag:])
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		field := message[:tag+size]
		message = message[tag+size:]
		inner, used := m[num]
		switch {
		case !used:
		case inner == nil || kind != protowire.BytesType:
			out = append(out, field...)
		default:
			var err error
			if out, err = inner.nested(append(out, field[:tag]...), field[tag:]); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// nested appends what is used of a message that has its length before it.
func (m fieldMask) nested(out, field []byte) ([]byte, error) {
	message, n := protowire.ConsumeBytes(field)
	if n < 0 {
		return nil, protowire.ParseError(n)
	}
	at := len(out)
	out, err := m.keep(out, message)
	if err != nil {
		return nil, err
	}
	size := uint64(len(out) - at)
	room := protowire.SizeVarint(size)
	out = append(out, make([]byte, room)...)
	copy(out[at+room:], out[at:])
	protowire.AppendVarint(out[:at], size)
	return out, nil
}

// metaFields returns those that ingest.KeepMeta keeps, without annotations, and the owners.
func metaFields() fieldMask {
	return fieldMask{1: nil, 2: nil, 3: nil, 6: nil, 7: nil, 8: nil, 9: nil, 11: nil, 13: nil}
}

// podFields returns those that ingest.Stripper reads of a Pod.
func podFields() fieldMask {
	return fieldMask{
		1: metaFields(),
		// spec: containers (their ports), serviceAccountName, nodeName, hostNetwork, hostname, subdomain
		2: {2: {6: nil}, 8: nil, 10: nil, 11: nil, 16: nil, 17: nil},
		// status: phase, conditions (type, status), podIP, podIPs
		3: {1: nil, 2: {1: nil, 2: nil}, 6: nil, 12: nil},
	}
}

// sliceFields returns those that ingest.Stripper reads of an EndpointSlice.
func sliceFields() fieldMask {
	// endpoints (addresses, conditions, targetRef), ports, addressType
	return fieldMask{1: metaFields(), 2: {1: nil, 2: nil, 4: {1: nil, 2: nil, 3: nil}}, 3: nil, 4: nil}
}

// sound makes an error of a panic: client-go decodes in a goroutine where nobody else could catch it.
func sound(err *error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("a fault of pilotd: panic: %v", cause)
	}
}

// pod is a Pod that decodes what is used of it.
type pod struct {
	core.Pod `json:",inline"`
}

// Unmarshal returns what the decoder of protobuf calls.
func (p *pod) Unmarshal(message []byte) (err error) {
	defer sound(&err)
	kept, err := podFields().keep(make([]byte, 0, len(message)/2), message)
	if err != nil {
		return err
	}
	if err := p.Pod.Unmarshal(kept); err != nil || p.Name != "" {
		return err
	}
	p.Reset()
	return p.Pod.Unmarshal(message) // No Pod: a bookmark, which says in an annotation what it means.
}

// slice is an EndpointSlice that decodes what is used of it.
type slice struct {
	discovery.EndpointSlice `json:",inline"`
}

// Unmarshal returns what the decoder of protobuf calls.
func (s *slice) Unmarshal(message []byte) (err error) {
	defer sound(&err)
	kept, err := sliceFields().keep(make([]byte, 0, len(message)), message)
	if err != nil {
		return err
	}
	if err := s.EndpointSlice.Unmarshal(kept); err != nil || s.Name != "" {
		return err
	}
	s.Reset()
	return s.EndpointSlice.Unmarshal(message)
}

// whole returns the object that the decoder of protobuf or JSON read.
func whole(o any) any {
	switch o := o.(type) {
	case *pod:
		return &o.Pod
	case *slice:
		return &o.EndpointSlice
	}
	return o
}

// builtinCodecs read Kubernetes's own kinds.
func builtinCodecs() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	masked := map[value.Kind]runtime.Object{value.KindPod: &pod{}, value.KindEndpointSlice: &slice{}}
	for _, k := range ingest.Kinds() {
		if !k.Builtin {
			continue
		}
		object := masked[k.Name]
		if object == nil {
			object = k.New()
		}
		for _, gv := range k.GroupVersions() {
			scheme.AddKnownTypeWithName(gv.WithKind(k.APIName()), object)
			scheme.AddKnownTypeWithName(gv.WithKind(k.APIName()+"List"), k.NewList())
			meta.AddToGroupVersion(scheme, gv)
		}
	}
	return serializer.NewCodecFactory(scheme)
}
