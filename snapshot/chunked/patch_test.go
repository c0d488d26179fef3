package chunked

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPatchIsTheEdits does one Patch to random Maps, some of which share chunks: they hold what the same edits make of
// them, in the chunks that their content has, come to the same measure, and share the chunks that they shared before.
func TestPatchIsTheEdits(t *testing.T) {
	quiet := chosen(1500, func(i int) string { return fmt.Sprintf("k%05d", i) }) // in which no hash ends a chunk
	var usual []string
	for i := range 600 {
		usual = append(usual, fmt.Sprintf("%c%03d", 'a'+i%3, i))
	}
	blocks := dense(500)
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SampledFrom([][]string{quiet, usual, blocks}).Draw(t, "keys")
		pool := NewPool[int]()
		var first []Edit[int]
		for _, k := range keys {
			first = append(first, Edit[int]{Key: k})
		}
		var edits []Edit[int]
		replaces := rapid.IntRange(0, 3).Draw(t, "replaces") > 0
		for range rapid.IntRange(1, 12).Draw(t, "edits") {
			e := Edit[int]{Key: rapid.SampledFrom(keys).Draw(t, "key"), Value: rapid.IntRange(0, 2).Draw(t, "value")}
			if !replaces && rapid.Bool().Draw(t, "delete") {
				e = Edit[int]{Key: e.Key, Delete: true}
			}
			edits = append(edits, e)
		}
		patch := NewPatch(edits, pool, measureOf)
		var before, after []Map[int]
		for range 4 {
			m := Map[int]{}.Apply(first[:len(first)-rapid.SampledFrom([]int{0, 0, 0, 1, len(first)}).Draw(t, "missing")])
			if rapid.Bool().Draw(t, "own") {
				m = m.Set(rapid.SampledFrom(keys).Draw(t, "own"), 7)
			}
			m = pool.Share(m)
			if rapid.Bool().Draw(t, "measured") {
				m.Measure(measureOf)
			}
			got, want := patch.Of(m), m.Apply(edits)
			got.Diff(want, func(c Change[int]) { t.Fatalf("%s is %v, want %v", c.Key, c.New, c.Old) })
			if got.Len() != want.Len() || !slices.EqualFunc(chunksOf(got), chunksOf(want), func(a, b *Chunk[int]) bool {
				return a.Equal(b) && a.keys.end == b.keys.end
			}) {
				t.Fatal("the chunks are not those of the content")
			}
			checkShape(t, got)
			if got.Measure(measureOf) != New(itemsOf(want)).Measure(measureOf) {
				t.Fatal("the measure is not that of the content")
			}
			before, after = append(before, m), append(after, got)
		}
		// the first of equal Maps may have been edited before its chunks were known to be common
		for i := 2; i < len(before); i++ {
			if before[i].Same(before[0]) && before[i].Same(before[1]) && !after[i].Same(after[1]) {
				t.Fatal("Maps that shared their chunks share them no more")
			}
		}
	})
}
