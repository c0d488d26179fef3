package chunked

import (
	"fmt"
	"slices"
	"testing"
)

// TestTransitionAtTheEndOfABlock: the first Map ends where a block ends in another one, which goes on behind it. What
// the second Map has there may stand in the other one only where the block ends as it did.
func TestTransitionAtTheEndOfABlock(t *testing.T) {
	for _, c := range []struct {
		name         string
		keys         []end // what the keys end, in their order
		old, now, of []int // which of them the first Map, the second one and the other one have
	}{
		{"the block does not end any more", []end{endsNothing, endsBlock, endsNothing, endsBlock, endsNothing},
			[]int{0, 1, 2, 3}, []int{0, 1, 2}, []int{0, 1, 2, 3, 4}},
		{"the block ends behind what follows it", []end{endsNothing, endsBlock, endsNothing, endsBlock},
			[]int{0, 1}, []int{0, 3}, []int{0, 1, 2}},
		{"a block ends before what is appended", []end{endsNothing, endsChunk, endsBlock, endsNothing},
			[]int{0, 1}, []int{0, 1, 3}, []int{0, 1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			keys := keysThatEnd(c.keys)
			whole := mapOf(keys)
			part := func(from Map[int], has []int) Map[int] {
				var edits []Edit[int]
				for i, k := range keys {
					edits = append(edits, Edit[int]{Key: k, Delete: !slices.Contains(has, i)})
				}
				return from.Apply(edits)
			}
			m := part(whole, c.of)
			old := part(m, c.old)
			step := NewTransition(old, part(old, c.now).Set(keys[0], 1))
			got, want := step.Of(m), m.Apply(step.Edits())
			if !slices.Equal(itemsOf(got), itemsOf(want)) {
				t.Errorf("%v, want %v", itemsOf(got), itemsOf(want))
			}
			checkShape(t, got)
		})
	}
}

// keysThatEnd returns keys, in order, that end what is said.
func keysThatEnd(what []end) (out []string) {
	for i := 0; len(out) < len(what); i++ {
		if k := fmt.Sprintf("k%05d", i); endOf(k) == what[len(out)] {
			out = append(out, k)
		}
	}
	return out
}
