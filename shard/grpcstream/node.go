package grpcstream

import (
	"hash/maphash"
	"slices"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// maxExtensionLists bounds the lists of extensions that are kept. Each build of Envoy has one.
const maxExtensionLists = 64

// nodeDecoder decodes nodes. The list of extensions, nine tenths of an Envoy's node and the same for all Envoys of one build, is decoded
// once and shared: nobody may write to a node's Extensions. Safe for concurrent use.
type nodeDecoder struct {
	// Immutable after newNodeDecoder.
	seeds [2]maphash.Seed

	mu sync.Mutex
	// Guarded by mu.
	lists map[[2]uint64][]*corev3.Extension // by hash of their encoded form
}

func newNodeDecoder() *nodeDecoder {
	return &nodeDecoder{
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		lists: map[[2]uint64][]*corev3.Extension{},
	}
}

// extensions is the number of Node.extensions.
const extensions = 9

// decode is the node in raw, of which nothing is kept.
func (d *nodeDecoder) decode(raw []byte) (*corev3.Node, error) {
	var r regions
	err := r.walk(raw, func(n protowire.Number) field {
		if n == extensions {
			return names
		}
		return unknown
	})
	if err != nil {
		return nil, err
	}
	n, list := new(corev3.Node), &r[names]
	if !list.present || len(list.earlier) > 0 {
		return n, proto.Unmarshal(raw, n)
	}
	shared, err := d.list(raw[list.start:list.end])
	if err != nil {
		return nil, err
	}
	if err := proto.Unmarshal(raw[:list.start], n); err != nil {
		return nil, err
	}
	if err := (proto.UnmarshalOptions{Merge: true}).Unmarshal(raw[list.end:], n); err != nil {
		return nil, err
	}
	n.Extensions = shared
	return n, nil
}

// list are the extensions in run, the encoded form of a node that has nothing else.
func (d *nodeDecoder) list(run []byte) ([]*corev3.Extension, error) {
	key := [2]uint64{maphash.Bytes(d.seeds[0], run), maphash.Bytes(d.seeds[1], run)}
	d.mu.Lock()
	list, ok := d.lists[key]
	d.mu.Unlock()
	if ok {
		return list, nil
	}
	var n corev3.Node
	if err := proto.Unmarshal(run, &n); err != nil {
		return nil, err
	}
	list = slices.Clip(n.Extensions)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.lists) >= maxExtensionLists {
		clear(d.lists) // those in use come again
	}
	d.lists[key] = list
	return list, nil
}
