package encodecache_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/xdstype"
)

const assignmentURL = xdstype.EndpointURL

// filled returns a message with the texts a and b at several depths, in repeated fields and within an Any; other keeps
// a text of its own.
func filled(a, b string, localities int, other string) []byte {
	c := &clusterpb.Cluster{Name: a, AltStatName: other,
		LoadAssignment: &endpointpb.ClusterLoadAssignment{ClusterName: a}}
	for i := range localities {
		c.LoadAssignment.Endpoints = append(c.LoadAssignment.Endpoints, &endpointpb.LocalityLbEndpoints{
			Priority: uint32(i), Locality: &corepb.Locality{Region: other, Zone: b},
		})
	}
	inner, err := proto.MarshalOptions{Deterministic: true}.Marshal(&endpointpb.ClusterLoadAssignment{ClusterName: b})
	if err != nil {
		panic(err)
	}
	c.Filters = []*clusterpb.Filter{
		{Name: "same type", TypedConfig: &anypb.Any{TypeUrl: assignmentURL, Value: inner}},
		{Name: "another type", TypedConfig: &anypb.Any{TypeUrl: assignmentURL + "x", Value: []byte("\x0a\x01x")}},
	}
	out, err := proto.MarshalOptions{Deterministic: true}.Marshal(c)
	if err != nil {
		panic(err)
	}
	return out
}

func placeholders() []encodecache.Placeholder {
	path := func(fields ...int) (out []encodecache.Step) {
		for _, f := range fields {
			out = append(out, encodecache.Step{Field: f})
		}
		return out
	}
	return []encodecache.Placeholder{
		{Path: path(1), Text: 0},
		{Path: path(33, 1), Text: 0},
		{Path: path(33, 2, 1, 2), Text: 1},
		{Path: append(path(40, 2), encodecache.Step{Field: 2, Any: assignmentURL}, encodecache.Step{Field: 1}),
			Text: 1},
	}
}

// TestTemplateIsTheEncoder: what is filled in is what the encoder makes of the whole message, byte by byte, whatever
// lengths change.
func TestTemplateIsTheEncoder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(label string) string {
			return strings.Repeat(rapid.StringMatching("[a-z]{1,4}").Draw(t, label),
				rapid.SampledFrom([]int{1, 20, 40, 5000}).Draw(t, label+" times"))
		}
		localities, other := rapid.IntRange(0, 5).Draw(t, "localities"), text("other")
		s := encodecache.NewTemplate(filled("x", "y", localities, other), placeholders())
		texts := []string{text("a"), text("b"), "unused"}
		want := filled(texts[0], texts[1], localities, other)
		f := s.Fill(texts, nil)
		if !bytes.Equal(f.Bytes(), want) {
			t.Fatalf("got %x\nwant %x", f.Bytes(), want)
		}
		if s.Len(texts) != len(want) || f.Sum() != s.Sum(texts) {
			t.Fatal("length or sum is another")
		}
	})
}

// TestTemplateSum: equal content has one sum, also of two templates and with other texts that have no placeholder;
// other content another.
func TestTemplateSum(t *testing.T) {
	sum := func(other string, texts ...string) string {
		return encodecache.NewTemplate(filled("x", "y", 2, other), placeholders()).Sum(texts).String()
	}
	same := sum("o", "a", "b", "c")
	if same != sum("o", "a", "b", "d") {
		t.Error("a text without a placeholder counts")
	}
	seen := []string{same}
	for _, s := range []string{sum("p", "a", "b", "c"), sum("o", "b", "a", "c"), sum("o", "ab", "", "c"),
		sum("o", "", "ab", "c")} {
		if slices.Contains(seen, s) {
			t.Error("two contents, one sum")
		}
		seen = append(seen, s)
	}
}

func BenchmarkTemplate(b *testing.B) {
	s := encodecache.NewTemplate(filled("x", "y", 10, strings.Repeat("o", 300)), placeholders())
	texts := []string{"outbound|80||web.shop.svc.cluster.local", "zone"}
	b.ReportAllocs()
	for b.Loop() {
		if len(s.Fill(texts, nil).Bytes()) == 0 {
			b.Fatal("nothing")
		}
	}
}
