package grpcstream

import (
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// nodeDecoder decodes of a node what is read of it: id, locality, and of metadata and extensions what is asked for. The
// rest, nine tenths of an Envoy's node, is passed over: decoded it could cost a hundred times its size. Immutable.
type nodeDecoder struct {
	metadata   []string // keys
	extensions []string // type URLs
}

// Numbers of the fields of envoy.config.core.v3.Node that are read, and of what is in them.
const (
	nodeID         = 1
	nodeMetadata   = 3
	nodeLocality   = 4
	nodeExtensions = 9

	structFields = 1 // of google.protobuf.Struct: a map
	mapKey       = 1
	mapValue     = 2

	extensionTypeURLs = 6
)

// maxDepth is how deep a value of the metadata may be nested.
const maxDepth = 32

// decode returns the node in raw, of which nothing is kept. Extensions that are not asked for appear as one that is
// empty, for it means something whether a node lists any.
func (d *nodeDecoder) decode(raw []byte) (*corev3.Node, error) {
	n := new(corev3.Node)
	values := map[string][]byte{}
	err := eachField(raw, func(num protowire.Number, content []byte) (err error) {
		switch num {
		case nodeID:
			n.Id, err = string(content), checkText(content)
		case nodeMetadata:
			n.Metadata = &structpb.Struct{}
			err = d.entries(content, values)
		case nodeLocality:
			if n.Locality == nil {
				n.Locality = new(corev3.Locality)
			}
			err = proto.UnmarshalOptions{Merge: true, DiscardUnknown: true}.Unmarshal(content, n.Locality)
		case nodeExtensions:
			if len(n.Extensions) == 0 {
				n.Extensions = []*corev3.Extension{{}}
			}
			err = d.extension(content, n.Extensions[0])
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for key, value := range values {
		v := new(structpb.Value)
		if err := (proto.UnmarshalOptions{RecursionLimit: maxDepth}).Unmarshal(value, v); err != nil {
			return nil, err
		}
		if n.Metadata.Fields == nil {
			n.Metadata.Fields = map[string]*structpb.Value{}
		}
		n.Metadata.Fields[key] = v
	}
	return n, nil
}

// entries finds the values of the keys that are asked for in a google.protobuf.Struct.
func (d *nodeDecoder) entries(raw []byte, values map[string][]byte) error {
	return eachField(raw, func(num protowire.Number, entry []byte) error {
		if num != structFields {
			return nil
		}
		var key, value []byte
		err := eachField(entry, func(num protowire.Number, content []byte) error {
			switch num {
			case mapKey:
				key = content
			case mapValue:
				if value != nil { // of a message that comes twice the parts are merged
					content = slices.Concat(value, content)
				}
				value = content
			}
			return nil
		})
		if at := slices.Index(d.metadata, string(key)); err == nil && at >= 0 {
			if len(value) > maxMetadata {
				return tooLong(ReasonNode, "metadata "+d.metadata[at]+" of the node", len(value), maxMetadata)
			}
			values[d.metadata[at]] = value
		}
		return err
	})
}

// extension adds the types of one extension that are asked for to those found before.
func (d *nodeDecoder) extension(raw []byte, found *corev3.Extension) error {
	return eachField(raw, func(num protowire.Number, content []byte) error {
		if num == extensionTypeURLs {
			if at := slices.Index(d.extensions, string(content)); at >= 0 &&
				!slices.Contains(found.TypeUrls, d.extensions[at]) {
				found.TypeUrls = append(found.TypeUrls, d.extensions[at])
			}
		}
		return nil
	})
}

// eachField calls f with each length-delimited field of message. Others are passed over if they are well-formed.
func eachField(message []byte, f func(protowire.Number, []byte) error) error {
	for at := 0; at < len(message); {
		num, kind, n := protowire.ConsumeTag(message[at:])
		if n < 0 {
			return protowire.ParseError(n)
		}
		at += n
		m := protowire.ConsumeFieldValue(num, kind, message[at:])
		if m < 0 {
			return protowire.ParseError(m)
		}
		if kind == protowire.BytesType {
			content, _ := protowire.ConsumeBytes(message[at:])
			if err := f(num, content); err != nil {
				return err
			}
		}
		at += m
	}
	return nil
}
