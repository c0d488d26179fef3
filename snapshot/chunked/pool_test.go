package chunked

import (
	"fmt"
	"runtime"
	"testing"

	"pgregory.net/rapid"
)

// TestPoolShares edits several Maps at random and shares each with a Pool: content never differs from what it was, and
// two Maps that come out equal hold the same chunks, however they came to be.
func TestPoolShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := NewPool[int]()
		maps := make([]Map[int], 3)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			var edits []Edit[int]
			for range rapid.IntRange(1, 300).Draw(t, "edits") {
				key := rapid.SampledFrom([]string{"a", "k"}).Draw(t, "initial") +
					fmt.Sprint(rapid.IntRange(0, 300).Draw(t, "key"))
				edits = append(edits, Edit[int]{Key: key, Value: rapid.IntRange(0, 1).Draw(t, "value"),
					Delete: rapid.Bool().Draw(t, "delete")})
			}
			i := rapid.IntRange(0, len(maps)-1).Draw(t, "map")
			plain := maps[i].Apply(edits)
			maps[i] = p.Share(plain)
			maps[i].Diff(plain, func(c Change[int]) {
				t.Fatalf("sharing changed %s from %d to %d", c.Key, c.Old,
					c.New)
			})
			if maps[i].Len() != plain.Len() {
				t.Fatalf("sharing changed the length from %d to %d", plain.Len(), maps[i].Len())
			}
			var items []Item[int]
			for k, v := range plain.All() {
				items = append(items, Item[int]{k, v})
			}
			if anew := p.Share(New(items)); !anew.Same(maps[i]) {
				t.Fatalf("an equal Map that was made from nothing has chunks of its own")
			}
		}
		runtime.KeepAlive(maps)
	})
}

// TestPoolKeepsNothing makes Maps that are gone at once: the Pool does not grow with them.
func TestPoolKeepsNothing(t *testing.T) {
	p := NewPool[int]()
	for round := range 50 {
		items := make([]Item[int], 0, 300)
		for i := range 300 {
			items = append(items, Item[int]{fmt.Sprintf("k%d-%d", round, i), i})
		}
		p.Share(New(items))
		runtime.GC()
	}
	if n := len(p.known); n > 4*leastSwept {
		t.Errorf("%d chunks are known of Maps that are gone", n)
	}
	runtime.GC()
	if n := p.Len(); n != 0 {
		t.Errorf("%d chunks are known while there is no Map", n)
	}
}

// TestPoolTellsApart has many chunks that differ in one value: each stays known while a Map has it.
func TestPoolTellsApart(t *testing.T) {
	p := NewPool[int]()
	var held []Map[int]
	for i := range 1000 {
		held = append(held, p.Share(New([]Item[int]{{"k", i}})))
	}
	runtime.GC()
	for i, m := range held {
		if !p.Share(New([]Item[int]{{"k", i}})).Same(m) {
			t.Fatalf("chunk %d of %d was forgotten", i, len(held))
		}
	}
}
