package chunked

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTransitionIsTheEdits brings random Maps, which have more or less in common with a first one, over what that
// became: they hold what the same edits make of them, in the chunks that their content has, and come to the same
// measure.
func TestTransitionIsTheEdits(t *testing.T) {
	quiet := chosen(1500, func(i int) string { return fmt.Sprintf("k%05d", i) }) // in which no hash ends a chunk
	var usual []string
	for i := range 600 {
		usual = append(usual, fmt.Sprintf("%c%03d", 'a'+i%3, i))
	}
	blocks := dense(500)
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SampledFrom([][]string{quiet, usual, blocks, blocks, blocks}).Draw(t, "keys")
		size := rapid.IntRange(0, len(keys)).Draw(t, "items")
		center := size // near which most edits are, so that they meet
		if rapid.Bool().Draw(t, "within") {
			center = rapid.IntRange(0, len(keys)-1).Draw(t, "center")
		}
		edit := func(m Map[int], most int) Map[int] {
			var edits []Edit[int]
			for range rapid.IntRange(0, 6).Draw(t, "stretches") {
				at := center + rapid.IntRange(-9, 9).Draw(t, "near")
				if at < 0 || at >= len(keys) || rapid.IntRange(0, 9).Draw(t, "far") == 0 {
					at = rapid.IntRange(0, len(keys)-1).Draw(t, "at")
				}
				n := rapid.SampledFrom([]int{1, 1, 1, most}).Draw(t, "length")
				e := Edit[int]{Value: rapid.IntRange(0, 2).Draw(t, "value"), Delete: rapid.Bool().Draw(t, "delete")}
				for _, e.Key = range keys[at:min(len(keys), at+n)] {
					edits = append(edits, e)
				}
			}
			return m.Apply(edits)
		}
		var first []Edit[int]
		for _, k := range keys {
			first = append(first, Edit[int]{Key: k})
		}
		old := Map[int]{}.Apply(first[:size])
		if rapid.Bool().Draw(t, "with gaps") {
			old = edit(old, 5)
		}
		now, m := edit(old, 300), edit(old, 300)
		for _, one := range []Map[int]{old, now, m} {
			if rapid.Bool().Draw(t, "measured") {
				one.Measure(measureOf)
			}
		}
		step := NewTransition(old, now)
		got, want := step.Of(m), m.Apply(step.Edits())
		got.Diff(want, func(c Change[int]) { t.Fatalf("%s is %v, want %v", c.Key, c.New, c.Old) })
		if got.Len() != want.Len() {
			t.Fatalf("%d items, want %d", got.Len(), want.Len())
		}
		if !slices.EqualFunc(chunksOf(got), chunksOf(want), func(a, b *Chunk[int]) bool {
			return a.Equal(b) && a.keys.end == b.keys.end
		}) {
			t.Fatal("the chunks are not those of the content")
		}
		for _, c := range chunksOf(got) {
			if !slices.Contains(chunksOf(m), c) && slices.ContainsFunc(chunksOf(now), func(o *Chunk[int]) bool {
				return c != o && c.Equal(o)
			}) {
				t.Fatalf("a new chunk from %s on is one of its own, though the second Map has the same", c.first())
			}
		}
		checkShape(t, got)
		if got.Measure(measureOf) != New(itemsOf(want)).Measure(measureOf) {
			t.Fatal("the measure is not that of the content")
		}
		if !step.Of(old).Same(now) {
			t.Fatal("the first Map did not become the second")
		}
	})
}

// TestTransitionKeepsChunks: a Map that differs in one place from another one takes by pointer what changes in the
// other elsewhere.
func TestTransitionKeepsChunks(t *testing.T) {
	var edits []Edit[int]
	for i := range 2000 {
		edits = append(edits, Edit[int]{Key: fmt.Sprintf("k%04d", i)})
	}
	old := Map[int]{}.Apply(edits)
	now, m := old.Set("k1000", 1).Delete("k1500").Set("k0500x", 1), old.Set("k0001", 7)
	got, own := NewTransition(old, now).Of(m), 0
	for _, c := range chunksOf(got) {
		if !slices.Contains(chunksOf(now), c) {
			own++
		}
	}
	if own != 1 {
		t.Errorf("%d chunks are its own, want the one in which it differs", own)
	}
}

// TestTransitionBesideOwnItems: what a Map comes to that has one more item in the chunk that changes is worked out from
// the difference alone. One that had another value there gets the same value, too.
func TestTransitionBesideOwnItems(t *testing.T) {
	var keys []string
	for i := range 2000 {
		keys = append(keys, fmt.Sprintf("k%04d", i))
	}
	old := mapOf(keys)
	now := old.Set("k1000", 1)
	more, other := old.Set("k1000x", 7), old.Set("k1000", 7).Set("k1000x", 7)
	for _, m := range []Map[int]{old, now, more, other} {
		m.Measure(measureOf)
	}
	step := NewTransition(old, now)
	for _, m := range []Map[int]{more, other} {
		got, want := step.Of(m), m.Set("k1000", 1)
		if !slices.Equal(itemsOf(got), itemsOf(want)) {
			t.Error("the items are not those of the edit")
		}
		checkShape(t, got)
		measured := 0
		if got.Measure(func(key string, v int) Measure { measured++; return measureOf(key, v) }) !=
			New(itemsOf(want)).Measure(measureOf) {
			t.Error("the measure is not that of the content")
		}
		if m.Same(more) && measured > 0 {
			t.Errorf("%d items were measured, want none", measured)
		}
	}
}

// TestTransitionAtTheEnd: the last chunk of the first Map ends with a key that ends chunks, and that of the second with
// a later one: a Map that has more keys between the two keeps them in order.
func TestTransitionAtTheEnd(t *testing.T) {
	var ends, usual []string
	for i := 0; len(ends) < 2; i++ {
		if k := fmt.Sprintf("k%05d", i); endOf(k) == endsChunk {
			ends = append(ends, k)
		} else if len(ends) == 1 && endOf(k) == endsNothing {
			usual = append(usual, k)
		}
	}
	old := mapOf(append([]string{"k"}, ends[0]))
	now := old.Delete(ends[0]).Set(ends[1], 1)
	step, m := NewTransition(old, now), old.Set(usual[0], 7)
	got, want := step.Of(m), m.Apply(step.Edits())
	if !slices.Equal(itemsOf(got), itemsOf(want)) {
		t.Errorf("%v, want %v", itemsOf(got), itemsOf(want))
	}
}

func measureOf(key string, v int) Measure {
	var s Sum
	binary.LittleEndian.PutUint64(s[:], ^uint64(len(key)+v))
	copy(s[8:], key)
	return Measure{s, v}
}

func itemsOf(m Map[int]) (out []Item[int]) {
	for k, v := range m.All() {
		out = append(out, Item[int]{k, v})
	}
	return out
}

// BenchmarkTransition is the edit of one item, for a Map that differs in another place, and for one that has one more
// item in the chunk of the edit.
func BenchmarkTransition(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		for name, own := range map[string]string{"another chunk": "k00010", "the same chunk": "k00500x"} {
			b.Run(fmt.Sprintf("items=%d/%s", n, name), func(b *testing.B) {
				var edits []Edit[int]
				for i := range n {
					edits = append(edits, Edit[int]{Key: fmt.Sprintf("k%05d", i)})
				}
				old := Map[int]{}.Apply(edits)
				now, m := old.Set("k00500", 1), old.Set(own, 1)
				for _, one := range []Map[int]{old, now, m} {
					one.Measure(measureOf)
				}
				step := NewTransition(old, now)
				b.ReportAllocs()
				for b.Loop() {
					step.Of(m).Measure(measureOf)
				}
			})
		}
	}
}
