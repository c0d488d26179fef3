package chunked

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestAgainstMap applies random edits and holds the Map against Go's own map, and against a Map built from nothing:
// same content, same chunks (canonical), same digest, and a Diff that names exactly what changed.
func TestAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model, m := map[string]int{}, Map[int]{}
		universe := rapid.IntRange(1, 600).Draw(t, "universe")
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			var edits []Edit[int]
			before := maps.Clone(model)
			for range rapid.IntRange(0, universe).Draw(t, "edits") {
				e := Edit[int]{Key: rapid.SampledFrom([]string{"", "a", "k", "k"}).Draw(t, "initial") +
					fmt.Sprint(rapid.IntRange(0, universe).Draw(t, "key")), Value: rapid.IntRange(0, 2).Draw(t,
					"value"), Delete: rapid.Bool().Draw(t, "delete")}
				edits = append(edits, e)
				if e.Delete {
					delete(model, e.Key)
				} else {
					model[e.Key] = e.Value
				}
			}
			next := m.Apply(edits)
			checkDiff(t, before, model, m, next)
			m = next
			checkContent(t, model, m)
		}
	})
}

func checkContent(t *rapid.T, model map[string]int, m Map[int]) {
	items := []Item[int]{}
	for _, k := range slices.Sorted(maps.Keys(model)) {
		items = append(items, Item[int]{k, model[k]})
		if v, ok := m.Get(k); !ok || v != model[k] {
			t.Fatalf("Get(%s) = %d %v, want %d", k, v, ok, model[k])
		}
	}
	i := 0
	for k, v := range m.All() {
		if items[i].Key != k || items[i].Value != v {
			t.Fatalf("item %d is %s=%d, want %v", i, k, v, items[i])
		}
		i++
	}
	if i != len(items) || m.Len() != len(items) {
		t.Fatalf("%d items, Len %d, want %d", i, m.Len(), len(items))
	}
	fresh := New(items)
	if len(chunksOf(fresh)) != len(chunksOf(m)) {
		t.Fatalf("%d chunks, from nothing %d", len(chunksOf(m)), len(chunksOf(fresh)))
	}
	if a, b := digestOf(m), digestOf(fresh); a != b {
		t.Fatalf("digest depends on history")
	}
}

func checkDiff(t *rapid.T, before, after map[string]int, old, m Map[int]) {
	got := map[string]Change[int]{}
	m.Diff(old, func(c Change[int]) { got[c.Key] = c })
	for k := range maps.Keys(before) {
		if v, ok := after[k]; !ok || v != before[k] {
			if c := got[k]; !c.InOld || c.Old != before[k] || c.InNew != ok || c.New != v {
				t.Fatalf("diff of %s: %+v", k, c)
			}
			delete(got, k)
		}
	}
	for k, v := range after {
		if _, ok := before[k]; !ok {
			if c := got[k]; c.InOld || !c.InNew || c.New != v {
				t.Fatalf("diff of %s: %+v", k, c)
			}
			delete(got, k)
		}
	}
	if len(got) != 0 {
		t.Fatalf("diff names unchanged keys: %v", got)
	}
}

func digestOf(m Map[int]) Sum {
	join := func(s []Sum) Sum {
		var b []byte
		for _, x := range s {
			b = append(b, x[:]...)
		}
		h := sha256.Sum256(b)
		return Sum(h[:16])
	}
	return m.Digest(func(k string, v int) Sum {
		h := sha256.Sum256(fmt.Append(nil, k, "=", v))
		return Sum(h[:16])
	}, join)
}

// TestSharing shows that an edit leaves the other chunks alone, and that an edit that changes nothing gives the same
// Map.
func TestSharing(t *testing.T) {
	var items []Item[int]
	for i := range 10000 {
		items = append(items, Item[int]{fmt.Sprintf("key-%05d", i), i})
	}
	m := New(items)
	if same := m.Set("key-00042", 42); !same.Same(m) {
		t.Error("an edit that changes nothing made a new Map")
	}
	next := m.Set("key-05000", -1)
	shared := 0
	for _, c := range chunksOf(next) {
		if slices.Contains(chunksOf(m), c) {
			shared++
		}
	}
	if shared < len(chunksOf(m))-1 {
		t.Errorf("%d of %d chunks are shared", shared, len(chunksOf(m)))
	}
}

func BenchmarkSetOneOf100000(b *testing.B) {
	var items []Item[int]
	for i := range 100000 {
		items = append(items, Item[int]{fmt.Sprintf("key-%06d", i), i})
	}
	m := New(items)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		next := m.Set("key-050000", i+1000000)
		n := 0
		next.Diff(m, func(Change[int]) { n++ })
		if n != 1 {
			b.Fatal(n)
		}
	}
}

// TestOwnChunk: what begins with another byte than all else shares no chunk with it, so that adding it copies none.
func TestOwnChunk(t *testing.T) {
	var items []Item[int]
	for i := range 1000 {
		items = append(items, Item[int]{Key: fmt.Sprint("outbound|", i)})
	}
	base := New(append(items, Item[int]{Key: "Blackhole"}))
	own := base.Set("inbound|8080", 1)
	if len(chunksOf(own)) != len(chunksOf(base))+1 {
		t.Fatalf("%d chunks, were %d", len(chunksOf(own)), len(chunksOf(base)))
	}
	for i, c := range chunksOf(base)[1:] {
		if chunksOf(own)[i+2] != c {
			t.Fatalf("chunk %d was copied", i)
		}
	}
	if !base.Same(base.Set("outbound|7", 0)) {
		t.Fatal("an edit that changes nothing made another Map")
	}
}

func chunksOf[V comparable](m Map[V]) []*Chunk[V] { return slices.Collect(m.Chunks()) }

// TestOwnCosts: a Map with something of its own beside what it shares costs the same however much that is, also once it
// is digested.
func TestOwnCosts(t *testing.T) {
	cost := func(shared int) float64 {
		var items []Item[int]
		for i := range shared {
			items = append(items, Item[int]{Key: fmt.Sprint("outbound|", i)})
		}
		base := New(items)
		digestOf(base)
		const owners = 1000
		all := make([]Map[int], owners)
		before := allocated()
		for i := range all {
			all[i] = base.Set("inbound|8080", 1)
			digestOf(all[i])
		}
		grown := allocated() - before
		runtime.KeepAlive(all)
		return float64(grown) / owners
	}
	few, many := cost(100), cost(10000)
	if many > few+32 {
		t.Fatalf("%.0f bytes beside 100 items, %.0f beside 10,000", few, many)
	}
}

// allocated returns the live heap.
func allocated() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
