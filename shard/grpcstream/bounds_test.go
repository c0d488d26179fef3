package grpcstream

import (
	"fmt"
	"runtime"
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

// Every field of a request that a client can make as long as it likes is refused, with one line that says what, how
// long, and the limit, or cut off.
func TestFieldsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, tc := range []struct {
		name   string
		m      proto.Message
		code   codes.Code
		want   string
		reason Reason
	}{
		{"type URL", &discoveryv3.DiscoveryRequest{TypeUrl: long}, codes.InvalidArgument,
			"type_url has 5000 bytes, the limit is 256", ReasonField},
		{"nonce", &discoveryv3.DiscoveryRequest{ResponseNonce: long}, codes.InvalidArgument,
			"response_nonce has 5000 bytes, the limit is 256", ReasonField},
		{"name", &discoveryv3.DiscoveryRequest{ResourceNames: []string{"a", long}}, codes.InvalidArgument,
			"a resource name has 5000 bytes, the limit is 4096", ReasonField},
		{"delta type URL", &discoveryv3.DeltaDiscoveryRequest{TypeUrl: long}, codes.InvalidArgument,
			"type_url has 5000 bytes, the limit is 256", ReasonField},
		{"delta nonce", &discoveryv3.DeltaDiscoveryRequest{ResponseNonce: long}, codes.InvalidArgument,
			"response_nonce has 5000 bytes, the limit is 256", ReasonField},
		{"delta name", &discoveryv3.DeltaDiscoveryRequest{ResourceNamesSubscribe: []string{long}},
			codes.InvalidArgument, "a resource name has 5000 bytes, the limit is 4096", ReasonField},
		{"delta name that goes", &discoveryv3.DeltaDiscoveryRequest{ResourceNamesUnsubscribe: []string{long}},
			codes.InvalidArgument, "a resource name has 5000 bytes, the limit is 4096", ReasonField},
		{"delta version's name",
			&discoveryv3.DeltaDiscoveryRequest{InitialResourceVersions: map[string]string{long: ""}},
			codes.InvalidArgument, "a resource name has 5000 bytes, the limit is 4096", ReasonField},
		{"names in all", &discoveryv3.DiscoveryRequest{ResourceNames: slices.Repeat([]string{long[:1000]}, 11)},
			codes.ResourceExhausted, "too many bytes of resource names: 11033, the limit is 10000", ReasonSubscription},
		{"delta names in all",
			&discoveryv3.DeltaDiscoveryRequest{ResourceNamesSubscribe: slices.Repeat([]string{long[:1000]}, 6),
				ResourceNamesUnsubscribe: slices.Repeat([]string{long[:1000]}, 5)},
			codes.ResourceExhausted, "too many bytes of resource names: 11033, the limit is 10000", ReasonSubscription},
		{"metadata", &discoveryv3.DiscoveryRequest{Node: nodeWith("LABELS", strings.Repeat("x", 70000))},
			codes.InvalidArgument, "metadata LABELS of the node has 70004 bytes, the limit is 65536", ReasonNode},
		{"node", &discoveryv3.DiscoveryRequest{Node: nodeWith("other", strings.Repeat("x", 600<<10))},
			codes.ResourceExhausted, "too many bytes of the node: 614457, the limit is 524288", ReasonNode},
		{"locators", &discoveryv3.DiscoveryRequest{ResourceLocators: []*discoveryv3.ResourceLocator{{Name: long}}},
			codes.OK, "", 0},
		{"metadata that nobody reads",
			&discoveryv3.DiscoveryRequest{Node: nodeWith("ANNOTATIONS", strings.Repeat("x", 300<<10))}, codes.OK, "",
			0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, isDelta := tc.m.(*discoveryv3.DeltaDiscoveryRequest)
			s := New(nil, Options{NodeMetadata: testMetadata(),
				Limits: Limits{SubscriptionBytes: 10000}}).newScanner(isDelta)
			b, err := proto.Marshal(tc.m)
			must(t, err)
			_, err = s.scan(b)
			reason, _ := reasonOf(err)
			if st := status.Convert(err); st.Code() != tc.code || st.Message() != tc.want || reason != tc.reason {
				t.Errorf("%v because of %v, want %v %s because of %v", err, reason, tc.code, tc.want, tc.reason)
			}
		})
	}
}

func nodeWith(key, text string) *corev3.Node {
	n := nodeOf(1)
	n.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{key: structpb.NewStringValue(text)}}
	return n
}

// What a stream over a limit was over is counted.
func TestStreamsOverALimitAreCounted(t *testing.T) {
	h := start(t, Options{Limits: Limits{RequestBytes: 10000}})
	for reason, m := range map[Reason]*discoveryv3.DiscoveryRequest{
		ReasonField:   {Node: nodeOf(1), TypeUrl: strings.Repeat("x", 5000)},
		ReasonNode:    {Node: &corev3.Node{}},
		ReasonRequest: {Node: nodeOf(1), TypeUrl: strings.Repeat("x", 20000)},
	} {
		c := h.sotw(t)
		must(t, c.Send(m))
		if _, err := c.Recv(); err == nil {
			t.Error(reason, "is not refused")
		}
	}
	h.grpc.GracefulStop() // every stream has ended
	want := [NumReasons]uint64{ReasonField: 1, ReasonNode: 1, ReasonRequest: 1}
	if got := h.server.Stats().Refused; got != want {
		t.Errorf("refused %v, want %v", got, want)
	}
}

// idle gives a scanner of each of many streams a few requests, and reports how many bytes of live memory a stream
// keeps.
func idle(t *testing.T, delta bool, requests ...proto.Message) int {
	t.Helper()
	server := New(nil, Options{NodeMetadata: testMetadata()})
	const streams = 4
	type kept struct {
		scanner scanner
		last    ads.Request
	}
	all := make([]kept, streams)
	for i := range all {
		all[i].scanner = server.newScanner(delta)
	}
	var encoded [][]byte
	for _, m := range requests {
		b, err := proto.Marshal(m)
		must(t, err)
		encoded = append(encoded, b)
	}
	before := liveBytes()
	for i := range all {
		for _, b := range encoded {
			r, err := all[i].scanner.scan(b)
			if err == nil {
				all[i].last = r
			}
		}
	}
	after := liveBytes()
	runtime.KeepAlive(all)
	runtime.KeepAlive(server)
	return int(after-before) / streams
}

func liveBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// An idle stream keeps nothing of a large request but what is bounded.
func TestAnIdleStreamKeepsNothingOfALargeRequest(t *testing.T) {
	large := strings.Repeat("x", 4_000_000)
	types := make([]proto.Message, 40)
	for i := range types {
		types[i] = &discoveryv3.DiscoveryRequest{TypeUrl: fmt.Sprint(i, large)}
	}
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprint(large[:4000], i)
	}
	var extensions []*corev3.Extension
	for i := range 80_000 {
		extensions = append(extensions, &corev3.Extension{Name: fmt.Sprint(i)})
	}
	crowded := nodeOf(1)
	crowded.Extensions = extensions[:40_000]
	for _, tc := range []struct {
		name     string
		delta    bool
		requests []proto.Message
		limit    int
	}{
		{"refusal", false, []proto.Message{&discoveryv3.DiscoveryRequest{ErrorDetail: &statuspb.Status{Message: large}}},
			16 << 10},
		{"delta refusal", true,
			[]proto.Message{&discoveryv3.DeltaDiscoveryRequest{ErrorDetail: &statuspb.Status{Message: large}}},
			16 << 10},
		{"version", false, []proto.Message{&discoveryv3.DiscoveryRequest{VersionInfo: large}}, 8 << 10},
		{"nonce", true, []proto.Message{&discoveryv3.DeltaDiscoveryRequest{ResponseNonce: large}}, 8 << 10},
		{"types", false, types, 8 << 10},
		{"delta types", true, types, 8 << 10},
		{"extensions", false, []proto.Message{&discoveryv3.DiscoveryRequest{Node: crowded}}, 16 << 10},
		{"names that others replace", false, []proto.Message{
			&discoveryv3.DiscoveryRequest{TypeUrl: xdstype.EndpointURL, ResourceNames: names},
			&discoveryv3.DiscoveryRequest{TypeUrl: xdstype.EndpointURL, ResourceNames: []string{"a"}},
		}, 16 << 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if n := idle(t, tc.delta, tc.requests...); n > tc.limit {
				t.Errorf("a stream keeps %d bytes, want at most %d", n, tc.limit)
			}
		})
	}
}

// A set that keeps one name of a large request does not keep the request.
func TestNamesKeepNothingOfTheirRequest(t *testing.T) {
	table := ads.NewNamesTable()
	before := liveBytes()
	var kept []*ads.Names
	for i := range 10 {
		var raw []byte
		for j := range 1000 {
			raw = protowire.AppendString(protowire.AppendTag(raw, 3, protowire.BytesType),
				fmt.Sprint(strings.Repeat("x", 4000), i, ".", j))
		}
		all, err := table.Intern(raw)
		must(t, err)
		for first := range all.All() {
			rest, err := table.Intern(raw)
			must(t, err)
			kept = append(kept, table.Minus(rest, table.Edit(all, nil, []string{first})))
			break
		}
	}
	if n := liveBytes() - before; n > 1<<20 {
		t.Errorf("10 names keep %d bytes", n)
	}
	runtime.KeepAlive(kept)
	runtime.KeepAlive(table)
}

// A part of the metadata that is nested as deep as it can be does not cost the stack of its decoder.
func TestNestedMetadataIsRefused(t *testing.T) {
	v := structpb.NewNullValue()
	for range 100 {
		v = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{v}})
	}
	n := nodeOf(1)
	n.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{"LABELS": v}}
	b, err := proto.Marshal(&discoveryv3.DiscoveryRequest{Node: n})
	must(t, err)
	s, _ := newTestScanner(false)
	if _, err := s.scan(b); status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
}
