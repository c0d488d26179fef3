// Package chunked is a persistent sorted map that is cheap to copy, to compare and to share.
//
// A Map is a list of groups, one for each first byte of its keys, and a group is a list of chunks of some 64 items,
// sorted by key:
//
//	Map ─┬─ group i ── chunk inbound|…      Apply copies the list of groups, and the chunks and the
//	     └─ group o ─┬ chunk outbound|a…    group lists that its edits fall into; all others are
//	                 └ chunk outbound|n…    shared with the predecessor, so Diff skips them by pointer.
//
// Where a chunk ends depends on the keys alone (a key whose hash says so is the last of its chunk, and so is the last
// of its group; and where no hash says so for too long, the chunk is cut by the bits of its keys: see maxChunk): two
// Maps with equal content have equal chunks however they came to be, so a digest over chunk digests is a digest of the
// content. Keys that begin alike belong together: what one client has of its own (inbound|…, virtualInbound) gets a
// small chunk beside those that all share, and its Map costs the same however many those are.
//
// Maps and their chunks are immutable; the zero Map is empty. All functions are safe for concurrent use.
package chunked

import (
	"hash/maphash"
	"iter"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
)

// Map is a sorted map from string to V. Values are compared with ==. It is one pointer, for many hold several.
type Map[V comparable] struct{ root *root[V] }

// root is what a Map that is not empty points to.
type root[V comparable] struct {
	groups []*group[V]
	n      int
}

// group is all items whose keys begin with the same byte. It is never empty.
type group[V comparable] struct {
	chunks []*Chunk[V]
	n      int
	own    Measure // what measure points to where it was known before anybody else had the group

	measure atomic.Pointer[Measure]
}

// Chunk is a run of items that Maps share: one pointer, one content.
type Chunk[V comparable] struct {
	// Immutable after New and Apply.
	items   []Item[V]
	natural bool    // the hash of the last key ends the chunk
	own     Measure // what measure points to where it was known before anybody else had the chunk

	sum atomic.Pointer[Sum]
	// weight is one more than what Weigh found, 0 before.
	weight  atomic.Int64
	measure atomic.Pointer[Measure]
	// pooled is set once a Pool gives this chunk to Maps that have an equal one, common once it has done so.
	pooled, common atomic.Bool
}

// Sum is a content digest.
type Sum [16]byte

// Item is one entry of a Map.
type Item[V comparable] struct {
	Key   string
	Value V
}

// Edit sets Key to Value, or deletes it. A Value that has a method Absent that reports true deletes it too.
type Edit[V comparable] struct {
	Key    string
	Value  V
	Delete bool
}

const chunkSize = 64

// endsChunk reports whether key is the last of its chunk whatever comes after it: one in chunkSize, by FNV-1a with its
// high bits mixed down, so that all replicas agree.
func endsChunk(key string) bool {
	h := uint64(14695981039346656037)
	for i := 0; i < len(key); i++ {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	return (h>>33)%chunkSize == 0
}

// New makes a Map of items, which it sorts; of several items with one key the last counts.
func New[V comparable](items []Item[V]) Map[V] {
	edits := make([]Edit[V], len(items))
	for i, it := range items {
		edits[i] = Edit[V]{Key: it.Key, Value: it.Value}
	}
	return Map[V]{}.Apply(edits)
}

// Len returns the number of items.
func (m Map[V]) Len() int {
	if m.root == nil {
		return 0
	}
	return m.root.n
}

// groups returns those of the Map, in order.
func (m Map[V]) groups() []*group[V] {
	if m.root == nil {
		return nil
	}
	return m.root.groups
}

// newMap returns the Map of groups.
func newMap[V comparable](groups []*group[V]) Map[V] {
	if len(groups) == 0 {
		return Map[V]{}
	}
	r := &root[V]{groups: groups}
	for _, g := range groups {
		r.n += g.n
	}
	return Map[V]{r}
}

// Get returns the value of key.
func (m Map[V]) Get(key string) (V, bool) {
	var zero V
	groups := m.groups()
	at := findGroup(groups, initial(key))
	if at == len(groups) || groups[at].initial() != initial(key) {
		return zero, false
	}
	chunks := groups[at].chunks
	if c := find(chunks, key); c < len(chunks) {
		if i, ok := chunks[c].find(key); ok {
			return chunks[c].items[i].Value, true
		}
	}
	return zero, false
}

// findGroup returns the index of the first group that does not come before the one of a first byte.
func findGroup[V comparable](groups []*group[V], first string) int {
	return sort.Search(len(groups), func(i int) bool { return groups[i].initial() >= first })
}

// find returns the index of the chunk that key falls into: the first whose last key is not before it.
func find[V comparable](chunks []*Chunk[V], key string) int {
	return sort.Search(len(chunks), func(i int) bool { return chunks[i].last() >= key })
}

// initial returns the first byte of a key.
func initial(key string) string { return key[:min(1, len(key))] }

func (g *group[V]) initial() string { return initial(g.chunks[0].items[0].Key) }

func (c *Chunk[V]) last() string { return c.items[len(c.items)-1].Key }

func (c *Chunk[V]) find(key string) (int, bool) {
	return slices.BinarySearchFunc(c.items, key, func(it Item[V], k string) int { return strings.Compare(it.Key, k) })
}

// All yields the items in order of their keys.
func (m Map[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for c := range m.Chunks() {
			for _, it := range c.items {
				if !yield(it.Key, it.Value) {
					return
				}
			}
		}
	}
}

// Chunks yields the runs that the Map consists of, in order.
func (m Map[V]) Chunks() iter.Seq[*Chunk[V]] {
	return func(yield func(*Chunk[V]) bool) {
		for _, g := range m.groups() {
			for _, c := range g.chunks {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// Items returns the items of the run, in order; read only.
func (c *Chunk[V]) Items() []Item[V] { return c.items }

// From yields the items whose key is start or after it, in order.
func (m Map[V]) From(start string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		groups := m.groups()
		for _, g := range groups[findGroup(groups, initial(start)):] {
			for _, c := range g.chunks[find(g.chunks, start):] {
				for _, it := range c.items {
					if it.Key >= start && !yield(it.Key, it.Value) {
						return
					}
				}
			}
		}
	}
}

// Same reports whether m and o are one Map: they share every chunk. False says nothing about their content.
func (m Map[V]) Same(o Map[V]) bool {
	return m.root == o.root || m.Len() == o.Len() && slices.EqualFunc(m.groups(), o.groups(),
		func(a, b *group[V]) bool {
			return a == b || slices.Equal(a.chunks, b.chunks)
		})
}

// Identity returns a hash of which chunks the Map has. Maps that are the Same have the same, others as good as never.
func (m Map[V]) Identity(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for c := range m.Chunks() {
		maphash.WriteComparable(&h, c)
	}
	return h.Sum64()
}

// Set returns m with key set to v; m itself if it is so already.
func (m Map[V]) Set(key string, v V) Map[V] { return m.Apply([]Edit[V]{{Key: key, Value: v}}) }

// Delete returns m without key; m itself if it has none.
func (m Map[V]) Delete(key string) Map[V] { return m.Apply([]Edit[V]{{Key: key, Delete: true}}) }

// Digest returns the digest of the whole content. item digests one item, join a sequence of digests; each chunk is
// digested once in its life, so one Map type must always be digested with the same functions.
func (m Map[V]) Digest(item func(key string, v V) Sum, join func([]Sum) Sum) Sum {
	var sums []Sum
	for c := range m.Chunks() {
		sum := c.sum.Load()
		if sum == nil {
			parts := make([]Sum, len(c.items))
			for j, it := range c.items {
				parts[j] = item(it.Key, it.Value)
			}
			joined := join(parts)
			sum = &joined
			c.sum.Store(sum)
		}
		sums = append(sums, *sum)
	}
	return join(sums)
}

// Weigh returns the sum of weigh over all items; each chunk is weighed once in its life, so one Map type must always be
// weighed by the same function.
func (m Map[V]) Weigh(weigh func(key string, v V) int) int {
	total := 0
	for c := range m.Chunks() {
		w := c.weight.Load()
		if w == 0 {
			w = 1
			for _, it := range c.items {
				w += int64(weigh(it.Key, it.Value))
			}
			c.weight.Store(w)
		}
		total += int(w - 1)
	}
	return total
}
