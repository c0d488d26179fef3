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

// fieldMask selects the fields of a message that pilotd uses, by their numbers. A nested mask does the same for the
// field's own message; nil selects all of it.
type fieldMask map[protowire.Number]fieldMask

// keep appends the selected fields of an encoded message to out. Most of a Pod is not used, and would cost more to
// decode than the rest.
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

// nested appends the selected fields of a message that is encoded with its length in front.
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

// metaFields returns the fields of ObjectMeta that ingest.KeepMeta keeps, except annotations, and the owner references.
func metaFields() fieldMask {
	return fieldMask{1: nil, 2: nil, 3: nil, 6: nil, 7: nil, 8: nil, 9: nil, 11: nil, 13: nil}
}

// podFields returns the fields of a Pod that ingest.Stripper reads.
func podFields() fieldMask {
	return fieldMask{
		1: metaFields(),
		// spec: containers (their ports), serviceAccountName, nodeName, hostNetwork, hostname, subdomain
		2: {2: {6: nil}, 8: nil, 10: nil, 11: nil, 16: nil, 17: nil},
		// status: phase, conditions (type, status), podIP, podIPs
		3: {1: nil, 2: {1: nil, 2: nil}, 6: nil, 12: nil},
	}
}

// sliceFields returns the fields of an EndpointSlice that ingest.Stripper reads.
func sliceFields() fieldMask {
	// endpoints (addresses, conditions, targetRef), ports, addressType
	return fieldMask{1: metaFields(), 2: {1: nil, 2: nil, 4: {1: nil, 2: nil, 3: nil}}, 3: nil, 4: nil}
}

// sound converts a panic to an error: client-go decodes in a goroutine of its own, where no other code could recover.
func sound(err *error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("a fault of pilotd: panic: %v", cause)
	}
}

// pod is a Pod that decodes only the fields that pilotd uses.
type pod struct {
	core.Pod `json:",inline"`
}

// Unmarshal is called by the protobuf decoder.
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
	return p.Pod.Unmarshal(message) // not a Pod but a bookmark, whose annotation matters
}

// slice is an EndpointSlice that decodes only the fields that pilotd uses.
type slice struct {
	discovery.EndpointSlice `json:",inline"`
}

// Unmarshal is called by the protobuf decoder.
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

// whole returns the API object inside what a decoder produced.
func whole(o any) any {
	switch o := o.(type) {
	case *pod:
		return &o.Pod
	case *slice:
		return &o.EndpointSlice
	}
	return o
}

// builtinCodecs decode the kinds of Kubernetes.
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
