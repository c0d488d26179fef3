package chunked

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Whatever Maps are added and removed, the Index finds the owners and items that a look into each Map finds.
func TestIndexAgainstLooking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := NewIndex[int, int, string](func(_ string, v int) int { return v % 7 })
		pool, owned := NewPool[int](), map[string]Map[int]{}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			owner := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "owner")
			old := owned[owner]
			next := Map[int]{}
			if rapid.IntRange(0, 4).Draw(t, "gone") > 0 {
				base := owned[rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "base")]
				var edits []Edit[int]
				for range rapid.IntRange(0, 200).Draw(t, "edits") {
					edits = append(edits, Edit[int]{Key: fmt.Sprint(rapid.IntRange(0, 300).Draw(t, "key")),
						Value: rapid.IntRange(0, 20).Draw(t, "value"), Delete: rapid.IntRange(0, 3).Draw(t, "delete") == 0})
				}
				next = pool.Share(base.Apply(edits))
			}
			x.Remove(old, owner)
			x.Add(next, owner)
			owned[owner] = next
			checkIndex(t, x, owned)
		}
		for owner, m := range owned {
			x.Remove(m, owner)
		}
		if x.Len() != 0 || len(x.chunks) != 0 {
			t.Fatalf("%d keys and %d chunks are left", x.Len(), len(x.chunks))
		}
	})
}

func checkIndex(t *rapid.T, x *Index[int, int, string], owned map[string]Map[int]) {
	for k := range 7 {
		var owners, items []string
		for owner, m := range owned {
			for name, v := range m.All() {
				if v%7 == k {
					owners, items = append(owners, owner), append(items, fmt.Sprint(name, "=", v))
				}
			}
		}
		var foundItems []string
		for it := range x.Items(k) {
			foundItems = append(foundItems, fmt.Sprint(it.Key, "=", it.Value))
		}
		if found := distinct(slices.Collect(x.Owners(k))); !slices.Equal(found, distinct(owners)) {
			t.Fatalf("owners of %d: %v, want %v", k, found, distinct(owners))
		}
		if found := distinct(foundItems); !slices.Equal(found, distinct(items)) {
			t.Fatalf("items of %d: %v, want %v", k, found, distinct(items))
		}
	}
}

func distinct(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}
