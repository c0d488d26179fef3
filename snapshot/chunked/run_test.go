package chunked

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// chosen returns n keys, in order, that a client has chosen so that none of them ends a chunk.
func chosen(n int, key func(i int) string) (out []string) {
	for i := 0; len(out) < n; i++ {
		if k := key(i); endOf(k) == endsNothing {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// dense returns n keys, in order, of which a fifth end a block and a fifth a chunk, so that small Maps have many
// blocks.
func dense(n int) (out []string) {
	left := [3]int{endsNothing: n - 2*(n/5), endsChunk: n / 5, endsBlock: n / 5}
	for i := 0; len(out) < n; i++ {
		k := fmt.Sprintf("%c%05d", 'a'+i%3, i*7919%100_000)
		if e := endOf(k); left[e] > 0 && !slices.Contains(out, k) {
			left[e]--
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// checkShape holds the chunks and blocks of a Map against those of one that is made from nothing, and what chunks are
// said to come to against their items.
func checkShape(t rapid.TB, m Map[int]) {
	fresh := New(itemsOf(m))
	if !slices.EqualFunc(chunksOf(m), chunksOf(fresh),
		func(a, b *Chunk[int]) bool { return a.Equal(b) && a.keys.end == b.keys.end }) {
		t.Fatal("chunks depend on history")
	}
	for _, c := range chunksOf(m) {
		var is Measure
		for i, k := range c.keys.list {
			is = is.Plus(measureOf(k, c.values[i]))
		}
		if noted, ok := c.measure.load(); ok && noted != is {
			t.Fatalf("a chunk from %s on is said to come to %v, not %v", c.first(), noted, is)
		}
	}
	for i, g := range m.groups() {
		f := fresh.groups()[i]
		if g.n != f.n || g.initial != f.initial || g.len() != f.len() {
			t.Fatalf("a group of %d blocks and %d items, from nothing %d and %d", g.len(), g.n, f.len(), f.n)
		}
		for j := range g.len() {
			if a, b := g.at(j), f.at(j); a.n != b.n || len(a.chunks) != len(b.chunks) {
				t.Fatalf("a block of %d chunks and %d items, from nothing %d and %d", len(a.chunks), a.n, len(b.chunks), b.n)
			}
		}
	}
}

func mapOf(keys []string) Map[int] {
	items := make([]Item[int], len(keys))
	for i, k := range keys {
		items[i] = Item[int]{Key: k}
	}
	return New(items)
}

// However keys are chosen, no chunk has more than maxChunk items, and an edit makes few new ones.
func TestChosenKeysMakeNoLargeChunk(t *testing.T) {
	const n = 50_000
	for name, key := range map[string]func(i int) string{
		"numbers":  func(i int) string { return fmt.Sprintf("a%07d", i) },
		"prefixes": func(i int) string { return fmt.Sprintf("a%s%d", strings.Repeat("a", i%300), i) },
		"bytes":    func(i int) string { return "a" + string([]byte{byte(i), byte(i >> 8), byte(i >> 16)}) },
	} {
		keys := chosen(n, key)
		m := mapOf(keys)
		for _, c := range chunksOf(m) {
			if c.Len() > maxChunk {
				t.Errorf("%s: a chunk has %d items", name, c.Len())
			}
		}
		if len(chunksOf(m)) > n/8 {
			t.Errorf("%s: %d chunks", name, len(chunksOf(m)))
		}
		for _, i := range []int{0, 1, n / 3, n - 1} {
			less := m.Delete(keys[i])
			made := 0
			for _, c := range chunksOf(less) {
				if !slices.Contains(chunksOf(m), c) {
					made++
				}
			}
			if made > 3 {
				t.Errorf("%s: without key %d, %d chunks are new", name, i, made)
			}
			if !slices.EqualFunc(chunksOf(less.Set(keys[i], 0)), chunksOf(m),
				func(a, b *Chunk[int]) bool { return a.Equal(b) }) {
				t.Errorf("%s: taking key %d away and giving it back makes other chunks", name, i)
			}
		}
	}
}

// TestChosenKeysAgainstMap is TestAgainstMap with keys of which few or none end a chunk, so that runs are long, are
// joined and fall apart, and with keys of which many end a block, so that these do.
func TestChosenKeysAgainstMap(t *testing.T) {
	var ends []string
	for i := 0; len(ends) < 40; i++ {
		if k := fmt.Sprintf("k%05d", i*37%9000); endOf(k) != endsNothing {
			ends = append(ends, k)
		}
	}
	quiet := chosen(3000, func(i int) string { return fmt.Sprintf("k%05d", i*2) })
	nested := chosen(600, func(i int) string { return "k" + strings.Repeat("0", i%300) + fmt.Sprint(i%7) })
	blocks := dense(500)
	rapid.Check(t, func(t *rapid.T) {
		model, m := map[string]int{}, Map[int]{}
		edit := func(edits []Edit[int]) {
			before := maps.Clone(model)
			for _, e := range edits {
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
			checkShape(t, m)
		}
		from := rapid.IntRange(0, len(quiet)-1).Draw(t, "from")
		var first []Edit[int]
		for _, k := range quiet[from:min(len(quiet), from+rapid.IntRange(0, len(quiet)).Draw(t, "some"))] {
			first = append(first, Edit[int]{Key: k})
		}
		edit(first)
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			var edits []Edit[int]
			for range rapid.IntRange(1, 12).Draw(t, "edits") {
				from := rapid.SampledFrom([][]string{quiet, quiet, ends, ends, nested, blocks, blocks}).Draw(t, "keys")
				at := rapid.IntRange(0, len(from)-1).Draw(t, "at")
				n := rapid.SampledFrom([]int{1, 1, 1, 20, 300}).Draw(t, "stretch")
				e := Edit[int]{Value: rapid.IntRange(0, 2).Draw(t, "value"), Delete: rapid.Bool().Draw(t, "delete")}
				for _, k := range from[at:min(len(from), at+n)] {
					e.Key = k
					edits = append(edits, e)
				}
			}
			edit(edits)
		}
	})
}

// BenchmarkChosenKeys is what one more key costs a set of 190,000 that was chosen so that no hash ends a chunk, digest
// included.
func BenchmarkChosenKeys(b *testing.B) {
	keys := chosen(190_000, func(i int) string { return fmt.Sprintf("k%07d", i) })
	m := mapOf(keys)
	digestOf(m)
	more := chosen(100, func(i int) string { return fmt.Sprintf("k%07d.more", i*1000) })
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		digestOf(m.Set(more[i%len(more)], 1))
	}
}
