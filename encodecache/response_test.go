package encodecache_test

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/xdstype"
)

const (
	typeURL    = xdstype.RouteURL
	identifier = `{"Component":"pilotd","ID":"pod-1","Info":{"version":"1.2"}}`
)

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// resource returns a route configuration as a composite of one Fragment for each virtual host, and as the Any that it
// should become.
func resource(t testing.TB, name string, hostSizes ...int) (*encodecache.Entry, *anypb.Any) {
	whole := &routev3.RouteConfiguration{Name: name}
	header := encodecache.NewFragment(marshal(t, whole))
	var parts []*encodecache.Fragment
	for i, size := range hostSizes {
		vh := &routev3.VirtualHost{Name: fmt.Sprint(i, strings.Repeat("x", size))}
		parts = append(parts, encodecache.NewFragment(marshal(t,
			&routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{vh}})))
		whole.VirtualHosts = append(whole.VirtualHosts, vh)
	}
	return encodecache.NewComposite(typeURL, name, header, slices.Values(parts)),
		&anypb.Any{TypeUrl: typeURL, Value: marshal(t, whole)}
}

// samples returns resources of shapes that the joining of pieces treats differently.
func samples(t testing.TB) (entries []*encodecache.Entry, anys []*anypb.Any) {
	shapes := [][]int{
		nil, {0}, {10, 10, 10}, {511, 512, 513}, {1023, 1024, 1025}, {5000, 1, 5000, 1}, {1, 5000}, {600, 600, 600},
		slices.Repeat([]int{100}, 1000), slices.Repeat([]int{20_000, 3}, 20),
	}
	for i, sizes := range shapes {
		e, a := resource(t, fmt.Sprintf("route-%d", i), sizes...)
		entries, anys = append(entries, e), append(anys, a)
	}
	leaf := marshal(t, &corev3.Node{Id: strings.Repeat("n", 700)})
	entries = append(entries, encodecache.NewLeaf("type.googleapis.com/node", "leaf", encodecache.NewFragment(leaf)),
		encodecache.NewLeaf("type.googleapis.com/node", "empty", encodecache.NewFragment(nil)))
	anys = append(anys, &anypb.Any{TypeUrl: "type.googleapis.com/node", Value: leaf},
		&anypb.Any{TypeUrl: "type.googleapis.com/node"})
	return entries, anys
}

func TestFrameIsTheEncodedAny(t *testing.T) {
	entries, anys := samples(t)
	for i, e := range entries {
		for range 2 { // once made, once kept
			f := e.EncodedAny()
			got := slices.Concat(f.Pieces...)
			if !bytes.Equal(got, marshal(t, anys[i])) {
				t.Errorf("%s: the Frame differs from the Any", e.Name())
			}
			if f.Len != len(got) {
				t.Errorf("%s: Len is %d, the pieces have %d bytes", e.Name(), f.Len, len(got))
			}
			if n := len(f.Pieces); n > 2 && f.Len/n < 500 {
				t.Errorf("%s: %d pieces of %d bytes in the mean", e.Name(), n, f.Len/n)
			}
		}
		if !bytes.Equal(e.Message(), anys[i].Value) || e.Size() != len(anys[i].Value) {
			t.Errorf("%s: message or size differs", e.Name())
		}
	}
}

func TestFrameIsKeptUntilDropped(t *testing.T) {
	e, _ := resource(t, "r", 9000, 9000)
	f := e.EncodedAny()
	if e.EncodedAny() != f {
		t.Error("a second call made another Frame")
	}
	version := e.Version()
	e.Drop()
	again := e.EncodedAny()
	if again == f {
		t.Error("the Frame outlived Drop")
	}
	if e.Version() != version || !bytes.Equal(slices.Concat(again.Pieces...), slices.Concat(f.Pieces...)) {
		t.Error("Drop changed version or content")
	}
}

func TestSotW(t *testing.T) {
	entries, anys := samples(t)
	a := encodecache.NewAssembler(identifier)
	for n := range len(entries) + 1 {
		want := &discoveryv3.DiscoveryResponse{VersionInfo: "v1", Resources: anys[:n], TypeUrl: typeURL, Nonce: "17",
			ControlPlane: &corev3.ControlPlane{Identifier: identifier}}
		check(t, a.SotW(encodecache.Header{TypeURL: typeURL, Version: "v1", Nonce: "17"}, entries[:n]), want,
			new(discoveryv3.DiscoveryResponse))
		want.ControlPlane = nil
		check(t, encodecache.AssembleSotW(encodecache.Header{TypeURL: typeURL, Version: "v1", Nonce: "17"}, entries[:n]),
			want, new(discoveryv3.DiscoveryResponse))
	}
	check(t, encodecache.AssembleSotW(encodecache.Header{}, nil), &discoveryv3.DiscoveryResponse{},
		new(discoveryv3.DiscoveryResponse))
}

func TestDelta(t *testing.T) {
	entries, anys := samples(t)
	a := encodecache.NewAssembler(identifier)
	removed := []string{"gone", "", strings.Repeat("long", 1000), "outbound|80||a.b"}
	for n := range len(entries) + 1 {
		want := &discoveryv3.DeltaDiscoveryResponse{SystemVersionInfo: "s", TypeUrl: typeURL, Nonce: "17",
			RemovedResources: removed[:n%(len(removed)+1)], ControlPlane: &corev3.ControlPlane{Identifier: identifier}}
		for i, e := range entries[:n] {
			want.Resources = append(want.Resources, &discoveryv3.Resource{Name: e.Name(), Version: e.Version(),
				Resource: anys[i]})
		}
		check(t, a.Delta(encodecache.Header{TypeURL: typeURL, Version: "s", Nonce: "17"}, entries[:n], want.RemovedResources),
			want,
			new(discoveryv3.DeltaDiscoveryResponse))
		want.ControlPlane = nil
		check(t, encodecache.AssembleDelta(encodecache.Header{TypeURL: typeURL, Version: "s", Nonce: "17"}, entries[:n],
			want.RemovedResources), want,
			new(discoveryv3.DeltaDiscoveryResponse))
	}
}

// check compares a response with the message that it should be, decoded and byte for byte.
func check(t *testing.T, r *encodecache.Response, want, got proto.Message) {
	t.Helper()
	b := r.Buffers().Materialize()
	if err := proto.Unmarshal(b, got); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got, want) {
		t.Fatalf("decoded response differs from the message: %d bytes, want %d", len(b), proto.Size(want))
	}
	if !bytes.Equal(b, marshal(t, want)) {
		t.Error("the response differs from the standard encoding")
	}
	if r.Len() != len(b) || r.Pieces() != len(r.Buffers()) {
		t.Errorf("Len %d, Pieces %d: really %d bytes, %d pieces", r.Len(), r.Pieces(), len(b), len(r.Buffers()))
	}
}

// counter counts what is given back to it.
type counter struct {
	mem.NopBufferPool
	puts int
}

func (c *counter) Put(*[]byte) { c.puts++ }

func TestTrackedTellsWhenTheLastByteIsRead(t *testing.T) {
	entries, _ := samples(t)
	for _, r := range []*encodecache.Response{
		encodecache.NewAssembler(identifier).SotW(encodecache.Header{TypeURL: typeURL, Version: "v", Nonce: "1"}, entries),
		encodecache.AssembleSotW(encodecache.Header{TypeURL: typeURL, Version: "v", Nonce: "1"}, nil),
		encodecache.AssembleSotW(encodecache.Header{}, nil),
	} {
		for range 2 { // a response is sent many times
			var c counter
			bufs := r.Tracked(&c)
			if !bytes.Equal(bufs.Materialize(), r.Buffers().Materialize()) {
				t.Fatal("Tracked has other bytes than Buffers")
			}
			reader := bufs.Reader()
			bufs.Free()
			if _, err := reader.Discard(max(0, r.Len()-1)); err != nil {
				t.Fatal(err)
			}
			if c.puts != 0 {
				t.Error("told too early")
			}
			reader.Discard(1)
			reader.Close()
			if c.puts != 1 {
				t.Errorf("told %d times", c.puts)
			}
		}
	}
}

func TestVersionsAreContent(t *testing.T) {
	seen := map[string]string{}
	entries, _ := samples(t)
	again, _ := samples(t)
	for i, e := range entries {
		if len(e.Version()) != 22 || e.Version() != again[i].Version() {
			t.Errorf("%s: version %q, the same content again %q", e.Name(), e.Version(), again[i].Version())
		}
		if other, ok := seen[e.Version()]; ok {
			t.Errorf("%s and %s have one version", e.Name(), other)
		}
		seen[e.Version()] = e.Name()
	}
	// The version of an Entry with one part is not that of the part.
	f := encodecache.NewFragment([]byte("x"))
	one := func() iter.Seq[*encodecache.Fragment] { return slices.Values([]*encodecache.Fragment{f}) }
	if v, size := encodecache.VersionOf(one()); v == f.Sum() || size != 1 {
		t.Error("VersionOf", v, size)
	}
}

// FuzzResponse splits bytes into fragments, entries and names of any sizes.
func FuzzResponse(f *testing.F) {
	f.Add([]byte("\x00\x01\x02some fragments"), "name", "nonce", "gone")
	f.Add(bytes.Repeat([]byte{200, 255, 3}, 900), "", "", "")
	f.Fuzz(func(t *testing.T, data []byte, name, nonce, gone string) {
		want := &discoveryv3.DeltaDiscoveryResponse{Nonce: nonce, TypeUrl: name, RemovedResources: []string{gone}}
		var entries []*encodecache.Entry
		for len(data) > 1 {
			n, parts := int(data[0]), []*encodecache.Fragment{}
			data = data[1:]
			all := data[:0:0]
			for ; n > 0 && len(data) > 1; n -= 16 {
				size := min(int(data[0])*9, len(data)-1)
				parts = append(parts, encodecache.NewFragment(data[1:1+size]))
				all = append(all, data[1:1+size]...)
				data = data[1+size:]
			}
			e := encodecache.NewComposite(typeURL, name, encodecache.NewFragment(nil), slices.Values(parts))
			entries = append(entries, e)
			want.Resources = append(want.Resources, &discoveryv3.Resource{Name: name, Version: e.Version(),
				Resource: &anypb.Any{TypeUrl: typeURL, Value: all}})
		}
		b, err := proto.Marshal(want)
		if err != nil {
			t.Skip("not UTF-8")
		}
		got := encodecache.AssembleDelta(encodecache.Header{TypeURL: name, Nonce: nonce}, entries,
			[]string{gone}).Buffers().Materialize()
		if !bytes.Equal(got, b) {
			t.Fatalf("got\n%x\nwant\n%x", got, b)
		}
	})
}

// TestBlocks: a response of runs has the bytes of one of entries, however they are cut into runs.
func TestBlocks(t *testing.T) {
	entries, _ := samples(t)
	a := encodecache.NewAssembler(identifier)
	for cut := range len(entries) + 1 {
		var sotw, delta []*encodecache.Block
		for _, run := range [][]*encodecache.Entry{entries[:cut], entries[cut:]} {
			sotw, delta = append(sotw, encodecache.NewSotWBlock(slices.Values(run))),
				append(delta, encodecache.NewDeltaBlock(slices.Values(run)))
		}
		for kind, r := range map[string][2]*encodecache.Response{
			"SotW": {a.SotWBlocks(encodecache.Header{TypeURL: typeURL, Version: "v", Nonce: "1"}, sotw),
				a.SotW(encodecache.Header{TypeURL: typeURL, Version: "v", Nonce: "1"}, entries)},
			"Delta": {a.DeltaBlocks(encodecache.Header{TypeURL: typeURL, Nonce: "1"}, delta, []string{"gone", ""}),
				a.Delta(encodecache.Header{TypeURL: typeURL, Nonce: "1"}, entries, []string{"gone", ""})},
		} {
			if !bytes.Equal(r[0].Buffers().Materialize(), r[1].Buffers().Materialize()) || r[0].Len() != r[1].Len() {
				t.Errorf("%s cut at %d: the bytes differ", kind, cut)
			}
		}
	}
}

// TestJoined: a response of many small pieces is the same bytes in few, and one of few stays as it is.
func TestJoined(t *testing.T) {
	sizes := slices.Repeat([]int{700, 1200, 30, 40 << 10}, 50)
	e, _ := resource(t, "many", sizes...)
	for _, r := range []*encodecache.Response{
		encodecache.AssembleSotW(encodecache.Header{TypeURL: typeURL, Version: "v", Nonce: "1"}, []*encodecache.Entry{e}),
		encodecache.AssembleDelta(encodecache.Header{TypeURL: typeURL, Nonce: "1"}, []*encodecache.Entry{e}, []string{"gone"}),
	} {
		j := r.Joined()
		if j.Pieces() > r.Pieces()/2+2 || j.Len() != r.Len() || !bytes.Equal(j.Buffers().Materialize(),
			r.Buffers().Materialize()) {
			t.Errorf("%d pieces of %d bytes became %d of %d", r.Pieces(), r.Len(), j.Pieces(), j.Len())
		}
		if j.Joined() != j {
			t.Error("it was joined again")
		}
		if got := j.Tracked(nil); len(got) != j.Pieces() {
			t.Error("what is tracked is not what is joined")
		}
	}
	if r := encodecache.AssembleSotW(encodecache.Header{TypeURL: typeURL, Version: "v", Nonce: "1"},
		nil); r.Joined() != r {
		t.Error("a small one was copied")
	}
}
