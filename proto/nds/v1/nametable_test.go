package ndsv1_test

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	ndsv1 "github.com/pilotd/pilotd/proto/nds/v1"
)

// field appends a length-delimited field.
func field(b []byte, number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), content)
}

// The bytes are those that Istio's agents read: its names and numbers.
func TestWireForm(t *testing.T) {
	table := &ndsv1.NameTable{Table: map[string]*ndsv1.NameTable_NameInfo{"web.shop.svc.cluster.local": {
		Ips: []string{"10.0.0.1", "10.0.0.2"}, Registry: "Kubernetes", Shortname: "web", Namespace: "shop"}}}
	var info []byte
	for _, f := range []struct {
		number protowire.Number
		text   string
	}{{1, "10.0.0.1"}, {1, "10.0.0.2"}, {2, "Kubernetes"}, {3, "web"}, {4, "shop"}} {
		info = field(info, f.number, []byte(f.text))
	}
	want := field(nil, 1, field(field(nil, 1, []byte("web.shop.svc.cluster.local")), 2, info))
	fast, err := table.MarshalVT()
	if err != nil || !bytes.Equal(fast, want) || table.SizeVT() != len(want) {
		t.Errorf("MarshalVT gives %q, %v, want %q", fast, err, want)
	}
	slow, err := proto.MarshalOptions{Deterministic: true}.Marshal(table)
	if err != nil || !bytes.Equal(slow, want) {
		t.Errorf("Marshal gives %q, %v, want %q", slow, err, want)
	}
	if name := table.ProtoReflect().Descriptor().FullName(); name != "istio.networking.nds.v1.NameTable" {
		t.Errorf("the message is called %s", name)
	}
}

// What an older istiod writes besides is no error.
func TestDeprecatedField(t *testing.T) {
	info := field(field(nil, 1, []byte("10.0.0.1")), 5, []byte("web.shop"))
	var m ndsv1.NameTable
	if err := proto.Unmarshal(field(nil, 2, info), &m); err != nil || m.GetNameInfo().GetIps()[0] != "10.0.0.1" {
		t.Errorf("reads %v, %v", &m, err)
	}
}
