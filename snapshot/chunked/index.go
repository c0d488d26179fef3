package chunked

import (
	"iter"
	"maps"
)

// Index finds the owners of Maps by what is in the Maps. Maps that share chunks share what the Index keeps for these,
// so that adding one costs what is its own, and a list entry for each chunk. It is not safe for concurrent use.
type Index[K, V, O comparable] struct {
	keyOf  func(name string, v V) K
	chunks map[*Chunk[V]]map[O]struct{} // the owners of each
	byKey  map[K][]*Chunk[V]            // a chunk once for each of its items with that key
	most   int                          // how many keys byKey had at most since it was made
}

// leastShrunk is how many keys an Index may have had without ever being made smaller.
const leastShrunk = 1024

// NewIndex makes an empty Index; keyOf is what an item is found by.
func NewIndex[K, V, O comparable](keyOf func(name string, v V) K) *Index[K, V, O] {
	return &Index[K, V, O]{keyOf: keyOf, chunks: map[*Chunk[V]]map[O]struct{}{}, byKey: map[K][]*Chunk[V]{}}
}

// Add notes that owner has m.
func (x *Index[K, V, O]) Add(m Map[V], owner O) {
	for c := range m.Chunks() {
		owners := x.chunks[c]
		if owners == nil {
			owners = map[O]struct{}{}
			x.chunks[c] = owners
			for i, name := range c.keys.list {
				k := x.keyOf(name, c.values[i])
				x.byKey[k] = append(x.byKey[k], c)
			}
		}
		owners[owner] = struct{}{}
	}
	x.most = max(x.most, len(x.byKey))
}

// Remove notes that owner has m no more.
func (x *Index[K, V, O]) Remove(m Map[V], owner O) {
	for c := range m.Chunks() {
		owners := x.chunks[c]
		if delete(owners, owner); len(owners) > 0 {
			continue
		}
		delete(x.chunks, c)
		for i, name := range c.keys.list {
			x.forget(x.keyOf(name, c.values[i]), c)
		}
	}
	x.shrink()
}

// shrink gives back the memory of keys that are gone: a map of Go's keeps its room for all that it ever had.
func (x *Index[K, V, O]) shrink() {
	if x.most < leastShrunk || len(x.byKey) > x.most/4 {
		return
	}
	byKey, chunks := make(map[K][]*Chunk[V], len(x.byKey)), make(map[*Chunk[V]]map[O]struct{}, len(x.chunks))
	maps.Copy(byKey, x.byKey)
	maps.Copy(chunks, x.chunks)
	x.byKey, x.chunks, x.most = byKey, chunks, len(byKey)
}

// forget takes one c out of those of k.
func (x *Index[K, V, O]) forget(k K, c *Chunk[V]) {
	all := x.byKey[k]
	for i, other := range all {
		if other != c {
			continue
		}
		all[i] = all[len(all)-1]
		all[len(all)-1] = nil
		if all = all[:len(all)-1]; len(all) == 0 {
			delete(x.byKey, k)
		} else {
			x.byKey[k] = all
		}
		return
	}
}

// Owners yields the owners of Maps that have an item of that key; some more than once.
func (x *Index[K, V, O]) Owners(k K) iter.Seq[O] {
	return func(yield func(O) bool) {
		for _, c := range x.byKey[k] {
			for o := range x.chunks[c] {
				if !yield(o) {
					return
				}
			}
		}
	}
}

// Items yields the items of that key; some more than once.
func (x *Index[K, V, O]) Items(k K) iter.Seq[Item[V]] {
	return func(yield func(Item[V]) bool) {
		for _, c := range x.byKey[k] {
			for i, name := range c.keys.list {
				if x.keyOf(name, c.values[i]) == k && !yield(Item[V]{name, c.values[i]}) {
					return
				}
			}
		}
	}
}

// Missing returns how many items of m are in no Map that was added.
func (x *Index[K, V, O]) Missing(m Map[V]) (n int) {
	for c := range m.Chunks() {
		if _, ok := x.chunks[c]; !ok {
			n += len(c.values)
		}
	}
	return n
}

// Len returns the number of keys.
func (x *Index[K, V, O]) Len() int { return len(x.byKey) }
