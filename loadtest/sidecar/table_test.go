package sidecar

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotd/pilotd/xdstype"
)

// made returns a resource as the table makes it of bytes.
func made(t testing.TB, table *Table, name, text string) *Resource {
	a := wrap(t, endpoints(name, text))
	b, err := proto.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	r, err := table.resource(b, form{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Whatever comes in whatever order, a set is what a map would be, and equal sets are the same.
func TestSetsAreWhatMapsWouldBe(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	table := NewTable(Marks{Endpoint: "198.18."})
	prev, oracle := table.none, map[string]string{}
	for step := range 3000 {
		var got []*Resource
		var removed []string
		came := map[string]string{}
		for range random.IntN(6) {
			name, text := fmt.Sprint("n", random.IntN(12)), fmt.Sprintf("198.18.100.%d", 101+random.IntN(3))
			got = append(got, made(t, table, name, text))
			came[name] = text
		}
		for range random.IntN(3) {
			removed = append(removed, fmt.Sprint("n", random.IntN(15)))
		}
		root := random.IntN(4) == 0
		next := map[string]string{}
		if !root {
			for name, text := range oracle {
				if !slices.Contains(removed, name) {
					next[name] = text
				}
			}
		}
		fresh, same, gone := 0, 0, 0
		for name, text := range came {
			if oracle[name] == text {
				same++
			} else {
				fresh++
			}
			next[name] = text
		}
		for name := range oracle {
			if next[name] == "" {
				gone++
			}
		}
		var c change
		if root {
			c = table.replace(prev, got)
		} else {
			c = table.update(prev, got, table.numbered(xdstype.Endpoint, removed))
		}
		if len(c.fresh) != fresh || len(c.same) != same || c.gone != gone {
			t.Fatalf("step %d: %d fresh, %d same, %d gone; want %d, %d, %d", step, len(c.fresh), len(c.same), c.gone,
				fresh, same, gone)
		}
		check(t, table, c, prev, next)
		prev, oracle = c.next, next
	}
}

// check compares a set with what it should be, and marks with the difference.
func check(t *testing.T, table *Table, c change, prev *set, want map[string]string) {
	t.Helper()
	var list []*Resource
	for name, text := range want {
		list = append(list, made(t, table, name, text))
	}
	if whole := table.replace(table.none, list); whole.next != c.next || len(c.next.list) != len(want) {
		t.Fatalf("%d resources, want %d: not the same set", len(c.next.list), len(want))
	}
	if !slices.IsSortedFunc(c.next.list, func(a, b *Resource) int { return int(a.number) - int(b.number) }) {
		t.Fatal("not sorted")
	}
	if c.next == prev && len(c.marks)+len(c.lost) > 0 {
		t.Fatal("marks of nothing", c.marks, c.lost)
	}
	for _, r := range c.fresh {
		if n := r.Marks[0]; !slices.Contains(c.marks, n) {
			t.Fatal("a mark is missing:", n)
		}
	}
}

// What no client has any more leaves the table.
func TestSupersededResourcesLeave(t *testing.T) {
	table := NewTable(Marks{Endpoint: "198.18."})
	var kept *set = table.none
	for n := range 20_000 {
		kept = table.update(kept,
			[]*Resource{made(t, table, fmt.Sprint("n", n%10), fmt.Sprintf("198.18.%d.%d", 100+n/100%100, 100+n%100))},
			nil).next
		table.uses(kept)
	}
	deadline := time.Now().Add(time.Minute)
	for left := 0; ; {
		runtime.GC()
		table.mu.RLock()
		left = len(table.resources) + len(table.sets) + len(table.lists)
		table.mu.RUnlock()
		if left <= 11 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(left, "are left")
		}
		runtime.Gosched()
	}
	if len(kept.list) != 10 || table.Len() != 10 {
		t.Error(len(kept.list), "resources of", table.Len())
	}
	runtime.KeepAlive(kept)
}

// A big resource is the same however its bytes come, and its marks are found wherever they are.
func TestBigResourcesInParts(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, delta := range []bool{false, true} {
		table := NewTable(Marks{Endpoint: "198.18."})
		for _, at := range []int{1, blockSize - 60, blockSize, 2*blockSize - 30, 40_000, 69_970} {
			m := endpoints("big", "x")
			m.Endpoints = []*endpointv3.LocalityLbEndpoints{{Priority: 7}}
			m.NamedEndpoints = map[string]*endpointv3.Endpoint{strings.Repeat("a", at) + "198.18.101.107" +
				strings.Repeat("b", 70_000-at): {}}
			b := message(t, xdstype.Endpoint, delta, answer{resources: []proto.Message{m}})
			var first *Resource
			for range 8 {
				p := parser{table: table, form: form{delta: delta}}
				for rest := b; len(rest) > 0; {
					n := min(len(rest), 1+random.IntN(20_000))
					_, _, err := p.feed(rest[:n])
					must(t, err)
					rest = rest[n:]
				}
				if len(p.response.resources) != 1 {
					t.Fatalf("%+v", p.response)
				}
				r := p.response.resources[0]
				if first == nil {
					first = r
				}
				if r != first || r.Name != "big" || !slices.Equal(r.Marks, []int{163}) || r.Type != xdstype.Endpoint ||
					delta != (r.version == "1") {
					t.Errorf("delta=%v, mark at %d: %+v", delta, at, r)
				}
			}
		}
	}
}

// Big resources that differ in one byte anywhere differ.
func TestBigResourcesDiffer(t *testing.T) {
	table := NewTable(Marks{})
	seen := map[*Resource]bool{}
	for at := 0; at < 50_000; at += 1_999 {
		text := bytes.Repeat([]byte("a"), 50_000)
		text[at] = 'b'
		p := parser{table: table}
		_, _, err := p.feed(message(t, xdstype.Route, false, answer{resources: []proto.Message{routes("80", string(text))}}))
		must(t, err)
		seen[p.response.resources[0]] = true
	}
	if len(seen) != 26 {
		t.Error(len(seen), "of 26")
	}
}

// Listeners and clusters are read as a whole however big they are, for what they name may be anywhere.
func TestBigListenersAreRead(t *testing.T) {
	table := NewTable(Marks{})
	l := listener(t, "l", "80", false)
	l.StatPrefix = strings.Repeat("x", 100_000)
	p := parser{table: table}
	_, _, err := p.feed(message(t, xdstype.Listener, false, answer{resources: []proto.Message{l}}))
	must(t, err)
	if r := p.response.resources[0]; !slices.Equal(r.uses, []string{"80"}) {
		t.Errorf("%+v", r)
	}
}

// BenchmarkFollow is what a client costs that gets what others have got: a thousand clusters, their endpoints, and a
// route configuration of half a megabyte.
func BenchmarkFollow(b *testing.B) {
	table := NewTable(Marks{Endpoint: "198.18.", Route: "/change-"})
	var cds, eds []proto.Message
	for i := range 1000 {
		cds = append(cds, cluster(fmt.Sprintf("outbound|80||service-%05d", i), strings.Repeat("x", 1000)))
		eds = append(eds, endpoints(fmt.Sprintf("outbound|80||service-%05d", i), strings.Repeat("x", 1000)))
	}
	responses := [][]byte{
		message(b, xdstype.Cluster, false, answer{resources: cds}),
		message(b, xdstype.Endpoint, false, answer{resources: eds}),
		message(b, xdstype.Listener, false, answer{resources: []proto.Message{listener(b, "l", "80", false)}}),
		message(b, xdstype.Route, false, answer{resources: []proto.Message{routes("80", strings.Repeat("/x/", 80_000))}}),
	}
	size := 0
	for _, r := range responses {
		size += len(r)
	}
	keep := follow(b, table, responses)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		follow(b, table, responses)
	}
	runtime.KeepAlive(keep)
}

func follow(b *testing.B, table *Table, responses [][]byte) *Client {
	c := NewClient(table, Spec{})
	c.Begin()
	p := parser{table: table}
	for _, r := range responses {
		for part := range slices.Chunk(r, 16<<10) {
			if _, _, err := p.feed(part); err != nil {
				b.Fatal(err)
			}
		}
		c.Take(&p.response)
		p.reset()
	}
	if !c.ready {
		b.Fatal("not ready")
	}
	return c
}
