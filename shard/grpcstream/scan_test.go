package grpcstream

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/xdstype"
)

// decoded returns what the standard decoder makes of a request, in the form that scan gives.
func decoded(table *ads.NamesTable, delta bool, b []byte) (ads.Request, error) {
	if delta {
		var m discoveryv3.DeltaDiscoveryRequest
		err := proto.Unmarshal(b, &m)
		return ads.Request{Delta: true, TypeURL: m.TypeUrl, Node: m.Node, Nonce: m.ResponseNonce, Error: m.ErrorDetail,
			Subscribe: table.Of(m.ResourceNamesSubscribe), Unsubscribe: table.Of(m.ResourceNamesUnsubscribe),
			Initial: table.VersionsOf(m.InitialResourceVersions)}, err
	}
	var m discoveryv3.DiscoveryRequest
	err := proto.Unmarshal(b, &m)
	return ads.Request{TypeURL: m.TypeUrl, Node: m.Node, Nonce: m.ResponseNonce, Error: m.ErrorDetail,
		Version: m.VersionInfo,
		Names:   table.Of(m.ResourceNames)}, err
}

// difference says in what two requests differ.
func difference(got, want ads.Request) string {
	switch {
	case got.Delta != want.Delta:
		return "Delta"
	case got.TypeURL != want.TypeURL:
		return "TypeURL"
	case got.Nonce != want.Nonce:
		return "Nonce"
	case got.Version != want.Version:
		return "Version"
	case (got.Node == nil) != (want.Node == nil) || !proto.Equal(got.Node, want.Node):
		return "Node"
	case (got.Error == nil) != (want.Error == nil) || !proto.Equal(got.Error, want.Error):
		return "Error"
	case got.Names != want.Names:
		return "Names"
	case got.Subscribe != want.Subscribe:
		return "Subscribe"
	case got.Unsubscribe != want.Unsubscribe:
		return "Unsubscribe"
	case (got.Initial == nil) != (want.Initial == nil) || !maps.Equal(got.Initial.All(), want.Initial.All()):
		return "Initial"
	}
	return ""
}

// reduced returns m without what a scanner passes over or cuts off.
func reduced(r ads.Request) ads.Request {
	r.Version = cut([]byte(r.Version), maxVersion)
	if r.Error != nil {
		r.Error = &statuspb.Status{Code: r.Error.Code, Message: cut([]byte(r.Error.Message), maxErrorText)}
	}
	if r.Node != nil {
		n := &corev3.Node{Id: r.Node.Id, Locality: r.Node.Locality}
		if r.Node.Metadata != nil {
			n.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{}}
			for k, v := range r.Node.Metadata.Fields {
				if slices.Contains(testMetadata(), k) {
					n.Metadata.Fields[k] = v
				}
			}
		}
		for _, e := range r.Node.Extensions {
			if len(n.Extensions) == 0 {
				n.Extensions = []*corev3.Extension{{}}
			}
			for _, u := range e.TypeUrls {
				if u == testExtension && len(n.Extensions[0].TypeUrls) == 0 {
					n.Extensions[0].TypeUrls = []string{u}
				}
			}
		}
		r.Node = n
	}
	return r
}

func testMetadata() []string { return []string{"NAMESPACE", "LABELS"} }

const testExtension = "stats.PluginConfig"

// bounds reports whether a request is within the bounds of single fields.
func bounds(r ads.Request) bool {
	long := func(names ...iter.Seq[string]) bool {
		for _, all := range names {
			for n := range all {
				if len(n) > ads.MaxName {
					return true
				}
			}
		}
		return false
	}
	return len(r.TypeURL) <= maxTypeURL && len(r.Nonce) <= maxNonce &&
		!long(r.Names.All(), r.Subscribe.All(), r.Unsubscribe.All(), maps.Keys(r.Initial.All()))
}

func newTestScanner(delta bool) (*scanner, *ads.NamesTable) {
	table := ads.NewNamesTable()
	s := New(nil, Options{Names: table, NodeMetadata: testMetadata(),
		NodeExtensions: []string{testExtension}}).newScanner(delta)
	return &s, table
}

// same fails unless scan and the standard decoder agree on b: scan refuses what is over a bound, too, and passes over
// what is wrong in parts of the node, the error and the locators that it does not read.
func same(t *testing.T, delta bool, b []byte) {
	t.Helper()
	s, table := newTestScanner(delta)
	want, wantErr := decoded(table, delta, b)
	input := bytes.Clone(b)
	got, err := s.scan(input)
	if !bytes.Equal(input, b) {
		t.Fatal("scan wrote into the message")
	}
	clear(input) // nothing of it may be kept
	switch {
	case err != nil && status.Code(err) != codes.InvalidArgument:
		t.Fatal("refused with", err)
	case err != nil && wantErr == nil && bounds(want):
		t.Fatalf("delta %v, %x:\nscan says %v", delta, b, err)
	case err == nil && wantErr == nil && !bounds(want):
		t.Fatalf("delta %v: over a bound, and not refused", delta)
	case err != nil || wantErr != nil:
		return
	}
	if d := difference(got, reduced(want)); d != "" {
		t.Fatalf("delta %v, %x: %s differs:\n%+v\n%+v", delta, b, d, got, want)
	}
}

// requests returns encoded requests, of both kinds, with what makes scanning hard.
func requests(t testing.TB) [][]byte {
	meta, err := structpb.NewStruct(map[string]any{"NAMESPACE": "ns", "LABELS": map[string]any{"app": "a"}})
	must(t, err)
	meta.Fields["PROXY_CONFIG"] = structpb.NewListValue(
		&structpb.ListValue{Values: []*structpb.Value{structpb.NewNullValue()}},
	)
	full := &corev3.Node{Id: "sidecar~1.2.3.4~a.ns~ns.svc", Metadata: meta,
		Extensions: []*corev3.Extension{{Name: "x", TypeUrls: []string{"a", testExtension}}, {Name: "y"}},
		Locality:   &corev3.Locality{Region: "r", SubZone: "s"}, ClientFeatures: []string{"f"}}
	var out [][]byte
	add := func(m proto.Message) {
		b, err := proto.Marshal(m)
		must(t, err)
		out = append(out, b)
	}
	long := make([]string, 300)
	for i := range long {
		long[i] = fmt.Sprint(strings.Repeat("n", i), i)
	}
	nack := &statuspb.Status{Code: 13, Message: "refused"}
	locators := []*discoveryv3.ResourceLocator{{Name: "l", DynamicParameters: map[string]string{"k": "v"}}}
	add(&discoveryv3.DiscoveryRequest{})
	add(&discoveryv3.DiscoveryRequest{VersionInfo: "1", Node: full, ResourceNames: long, TypeUrl: xdstype.EndpointURL,
		ResponseNonce: "n",
		ErrorDetail:   nack, ResourceLocators: locators})
	for _, n := range []int{maxTypeURL, ads.MaxName, maxErrorText} {
		for _, x := range []string{strings.Repeat("x", n), strings.Repeat("x", n-1) + "\u00e9"} {
			add(&discoveryv3.DiscoveryRequest{TypeUrl: x})
			add(&discoveryv3.DiscoveryRequest{ResponseNonce: x, VersionInfo: x})
			add(&discoveryv3.DiscoveryRequest{VersionInfo: x, ResourceNames: []string{x}})
			add(&discoveryv3.DeltaDiscoveryRequest{ErrorDetail: &statuspb.Status{Code: -1, Message: x},
				ResourceNamesSubscribe: []string{"", x}})
			add(&discoveryv3.DeltaDiscoveryRequest{InitialResourceVersions: map[string]string{x: x}})
		}
	}
	add(&discoveryv3.DiscoveryRequest{ResourceNames: []string{"a", "", "a", "b"}, TypeUrl: "other",
		Node: &corev3.Node{}, ErrorDetail: &statuspb.Status{}})
	add(&discoveryv3.DeltaDiscoveryRequest{Node: full, TypeUrl: xdstype.RouteURL, ResourceNamesSubscribe: long,
		ResourceNamesUnsubscribe: []string{"x", ""},
		InitialResourceVersions:  map[string]string{"a": "1", "": "2", "c": ""}, ResponseNonce: "n", ErrorDetail: nack,
		ResourceLocatorsSubscribe: locators, ResourceLocatorsUnsubscribe: locators})
	for _, b := range slices.Clone(out) {
		// Fields repeated, mixed, and in another order; the whole message twice is a merge of all fields.
		out = append(out, slices.Concat(b, b))
		unknown := protowire.AppendTag(nil, 1000, protowire.StartGroupType)
		unknown = protowire.AppendTag(unknown, 1000, protowire.EndGroupType)
		out = append(out, slices.Concat(unknown, b,
			protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), 7), b))
	}
	for _, bad := range []string{
		"\x1a\x02\xff\xfe", "\x22\x01\xff", "\x22\x01\xff\x22\x00", "\x0a\x05a",
		"\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x00\x00", "\x1c",
		"\x12\x01\xff", "\x32\x01\x08", "\x3a\x02\x0a\x05", "\x1b\x1c", "\x1b\x24",
		"\x0a\x01a\x0a\x01b\x1a\x01z\x0a\x00\x1a\x01y",
		"\x2a\x04\x0a\x02\xff\xfe", "\x2a\x03\x08\x01\x12", "\x2a\x02\x08\x01",
		"\x2a\x07\x0a\x01k\x12\x02vv\x2a\x03\x0a\x01k",
		"\x2a\x08\x0a\x01k\x0a\x01q\x12\x00", "\x2a\x04\x0b\x0c\x0a\x00", "\x82\x00\x00", "\x1a\x00", "\x2a\x00",
		"\x90\xff\xff\xff\x90\x00\xff\x00", "\x2a\x03\x0a\x01\xff",
	} {
		out = append(out, []byte(bad))
	}
	return out
}

func TestScanAgreesWithProto(t *testing.T) {
	for _, b := range requests(t) {
		for _, delta := range []bool{false, true} {
			same(t, delta, b)
			for cut := range min(len(b), 400) {
				same(t, delta, b[:cut])
			}
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, b := range requests(f) {
		f.Add(false, b)
		f.Add(true, b)
	}
	f.Fuzz(func(t *testing.T, delta bool, b []byte) { same(t, delta, b) })
}

// What a client repeats is recognised, and what it changes is seen.
func TestScanOfRepeatedRequests(t *testing.T) {
	s, _ := newTestScanner(false)
	scan := func(m *discoveryv3.DiscoveryRequest) ads.Request {
		b, err := proto.Marshal(m)
		must(t, err)
		r, err := s.scan(b)
		must(t, err)
		return r
	}
	first := scan(&discoveryv3.DiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.EndpointURL,
		ResourceNames: []string{"a", "b"}})
	again := scan(&discoveryv3.DiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.EndpointURL,
		ResourceNames: []string{"a", "b"}, ResponseNonce: "1"})
	if first.Node == nil || again.Node != nil || first.Names != again.Names {
		t.Errorf("%+v then %+v", first, again)
	}
	if r := scan(&discoveryv3.DiscoveryRequest{TypeUrl: xdstype.EndpointURL,
		ResourceNames: []string{"b", "a"}}); r.Names != first.Names {
		t.Error("another order is another set")
	}
	if r := scan(&discoveryv3.DiscoveryRequest{Node: nodeOf(2), TypeUrl: xdstype.EndpointURL}); r.Node != nil ||
		r.Names != nil {
		t.Errorf("a client that says later that it is another: %+v", r)
	}
}

func TestScanLimits(t *testing.T) {
	server := New(nil, Options{Limits: Limits{NodeBytes: 100, Subscriptions: 3}})
	sotw, delta := server.newScanner(false), server.newScanner(true)
	for _, tc := range []struct {
		name string
		s    *scanner
		m    proto.Message
		want string
	}{
		{"names", &sotw, &discoveryv3.DiscoveryRequest{TypeUrl: "a", ResourceNames: []string{"1", "2"}}, ""},
		{"names of two types", &sotw, &discoveryv3.DiscoveryRequest{TypeUrl: "b", ResourceNames: []string{"1", "2"}},
			"too many resource names: 4, the limit is 3"},
		{"fewer names", &sotw, &discoveryv3.DiscoveryRequest{TypeUrl: "b", ResourceNames: []string{"1"}}, ""},
		{"node", &sotw, &discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: strings.Repeat("x", 99)}},
			"too many bytes of the node: 101, the limit is 100"},
		{"delta names", &delta, &discoveryv3.DeltaDiscoveryRequest{ResourceNamesSubscribe: []string{"1", "2", "3",
			"4"}},
			"too many resource names: 4, the limit is 3"},
		{"delta versions", &delta,
			&discoveryv3.DeltaDiscoveryRequest{InitialResourceVersions: map[string]string{"1": "", "2": "", "3": "",
				"4": ""}},
			"too many resource names: 4, the limit is 3"},
	} {
		b, err := proto.Marshal(tc.m)
		must(t, err)
		_, err = tc.s.scan(b)
		if tc.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tc.name, err)
			}
			continue
		}
		if st := status.Convert(err); st.Code() != codes.ResourceExhausted || st.Message() != tc.want {
			t.Errorf("%s: %v, want %s", tc.name, err, tc.want)
		}
	}
}

// BenchmarkScanFirst is the first request of an Envoy, with its list of extensions, against decoding it.
func BenchmarkScanFirst(b *testing.B) {
	m := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: xdstype.ClusterURL, Node: nodeOf(1)}
	for i := range 516 {
		name := fmt.Sprintf("envoy.filters.http.some_filter_%d", i)
		m.Node.Extensions = append(m.Node.Extensions, &corev3.Extension{Name: name, Category: "envoy.filters.http",
			TypeUrls: []string{"envoy.extensions.filters.http.some_filter.v3.SomeFilter",
				"envoy.config.filter.http.some_filter.v2.SomeFilter"}})
	}
	raw, err := proto.Marshal(m)
	must(b, err)
	b.Run("scan", func(b *testing.B) {
		server := New(nil, Options{NodeMetadata: testMetadata(), NodeExtensions: []string{testExtension}})
		b.ReportAllocs()
		for b.Loop() {
			s := server.newScanner(true)
			if r, err := s.scan(raw); err != nil || len(r.Node.Extensions) != 1 {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = proto.Unmarshal(raw, new(discoveryv3.DeltaDiscoveryRequest))
		}
	})
}

// BenchmarkScanACK is the ACK of a State-of-the-World client, which repeats its 1,000 names, against decoding it.
func BenchmarkScanACK(b *testing.B) {
	m := &discoveryv3.DiscoveryRequest{VersionInfo: "0123456789012345678901", TypeUrl: xdstype.EndpointURL,
		ResponseNonce: "123456"}
	for i := range 1000 {
		m.ResourceNames = append(m.ResourceNames, fmt.Sprintf("outbound|80||service-%d.namespace.svc.cluster.local", i))
	}
	raw, err := proto.Marshal(m)
	must(b, err)
	b.Run("scan", func(b *testing.B) {
		s, _ := newTestScanner(false)
		first, err := s.scan(raw)
		must(b, err)
		b.ReportAllocs()
		for b.Loop() {
			if r, _ := s.scan(raw); r.Names != first.Names {
				b.Fatal("not recognised")
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = proto.Unmarshal(raw, new(discoveryv3.DiscoveryRequest))
		}
	})
}
