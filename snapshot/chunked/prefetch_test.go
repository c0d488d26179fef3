package chunked

import (
	"fmt"
	"testing"
)

// Prefetch reads Maps of every shape, near keys that they have and keys that they have not, and leaves them as they
// are.
func TestPrefetchLeavesMapsAsTheyAre(t *testing.T) {
	var maps []Map[int]
	for _, n := range []int{0, 1, 2, 100, 5000} {
		var items []Item[int]
		for i := range n {
			items = append(items, Item[int]{Key: fmt.Sprintf("%c-%d", 'b'+rune(i%2), i), Value: i})
		}
		maps = append(maps, New(items))
	}
	before := make([]Map[int], len(maps))
	copy(before, maps)
	for _, key := range []string{"", "a", "b", "b-4", "c-99", "d"} {
		Prefetch(maps, key)
	}
	for i, m := range maps {
		if !m.Same(before[i]) {
			t.Errorf("the Map of %d items is another one", m.Len())
		}
	}
}
