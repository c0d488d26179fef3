package proxy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// Every part of a node that is kept is bounded, and a node over a bound is refused with a line that says which.
func TestNodesAreBounded(t *testing.T) {
	node := func(edit func(*corev3.Node)) *corev3.Node {
		n := &corev3.Node{Id: "sidecar~10.0.0.1~a.ns~ns.svc", Locality: &corev3.Locality{},
			Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{}}}
		edit(n)
		return n
	}
	text := func(key string, n int) *corev3.Node {
		return node(func(node *corev3.Node) {
			node.Metadata.Fields[key] = structpb.NewStringValue(strings.Repeat("1",
				n))
		})
	}
	labelled := func(count, size int) *corev3.Node {
		return node(func(n *corev3.Node) {
			l := &structpb.Struct{Fields: map[string]*structpb.Value{}}
			for i := range count {
				l.Fields[fmt.Sprint(i)] = structpb.NewStringValue(strings.Repeat("v", size))
			}
			n.Metadata.Fields["LABELS"] = structpb.NewStructValue(l)
		})
	}
	for want, n := range map[string]*corev3.Node{
		"id has 1025 bytes, the limit is 1024": node(func(n *corev3.Node) {
			n.Id += strings.Repeat("x",
				1025-len(n.Id))
		}),
		"locality.region has 257 bytes, the limit is 256": node(func(n *corev3.Node) {
			n.Locality.Region = strings.Repeat("x", 257)
		}),
		"locality.zone has 257 bytes, the limit is 256": node(func(n *corev3.Node) {
			n.Locality.Zone = strings.Repeat("x", 257)
		}),
		"locality.sub_zone has 257 bytes, the limit is 256": node(func(n *corev3.Node) {
			n.Locality.SubZone = strings.Repeat("x", 257)
		}),
		"metadata INSTANCE_IPS has 5000 bytes, the limit is 4": text("INSTANCE_IPS", 5000),
		"metadata LABELS has 257 labels, the limit is 256":     labelled(257, 1),
		"metadata LABELS has 50190 bytes, the limit is 32768":  labelled(100, 500),
	} {
		if _, err := Accept(n, Peer{}); !errors.Is(err, ErrNode) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, key := range Metadata() {
		if key == "LABELS" || key == "INSTANCE_IPS" {
			continue
		}
		want := "metadata " + key + " has 257 bytes, the limit is 256"
		if _, err := Accept(text(key, 257), Peer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := Accept(labelled(256, 100), Peer{}); err != nil {
		t.Error(err)
	}
}
