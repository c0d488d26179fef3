// Package chunked is a persistent sorted map that is cheap to copy, to compare and to share.
//
// A Map is a list of chunks of some 64 items, sorted by key:
//
//	Map ─┬─ chunk a…f ── items        Apply copies the list of chunk pointers and the chunks
//	     ├─ chunk g…m ── items        that its edits fall into; all others are shared with the
//	     └─ chunk n…z ── items        predecessor, so Diff skips them by pointer.
//
// Where a chunk ends depends on the keys alone (a key whose hash says so is the last of its chunk, and so is one before a key that begins
// with another byte): two Maps with equal content have equal chunks however they came to be, so a digest over chunk digests is a digest of
// the content. Keys that begin alike belong together: what one client has of its own (inbound|…, virtualInbound) gets a small chunk beside
// those that all share.
//
// Maps and their chunks are immutable; the zero Map is empty. All functions are safe for concurrent use.
package chunked

import (
	"iter"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
)

// Map is a sorted map from string to V. Values are compared with ==.
type Map[V comparable] struct {
	chunks []*Chunk[V]
	n      int
}

// Chunk is a run of items that Maps share: one pointer, one content.
type Chunk[V comparable] struct {
	items []Item[V]
	sum   atomic.Pointer[Sum]
	// weight is one more than what Weigh found, 0 before.
	weight atomic.Int64
}

// Sum is a content digest.
type Sum [16]byte

// Item is one entry of a Map.
type Item[V comparable] struct {
	Key   string
	Value V
}

// Edit sets Key to Value, or deletes it.
type Edit[V comparable] struct {
	Key    string
	Value  V
	Delete bool
}

const chunkSize = 64

// endsChunk reports whether key is the last of its chunk: one in chunkSize, by FNV-1a with its high bits mixed down, so that all replicas
// agree.
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

// Len is the number of items.
func (m Map[V]) Len() int { return m.n }

// Get is the value of key.
func (m Map[V]) Get(key string) (V, bool) {
	if c := m.find(key); c < len(m.chunks) {
		if i, ok := m.chunks[c].find(key); ok {
			return m.chunks[c].items[i].Value, true
		}
	}
	var zero V
	return zero, false
}

// find is the index of the chunk that key falls into: the first whose last key is not before it.
func (m Map[V]) find(key string) int {
	return sort.Search(len(m.chunks), func(i int) bool { return m.chunks[i].last() >= key })
}

func (c *Chunk[V]) last() string { return c.items[len(c.items)-1].Key }

func (c *Chunk[V]) find(key string) (int, bool) {
	return slices.BinarySearchFunc(c.items, key, func(it Item[V], k string) int { return strings.Compare(it.Key, k) })
}

// All yields the items in order of their keys.
func (m Map[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, c := range m.chunks {
			for _, it := range c.items {
				if !yield(it.Key, it.Value) {
					return
				}
			}
		}
	}
}

// Chunks yields the runs that the Map consists of, in order.
func (m Map[V]) Chunks() iter.Seq[*Chunk[V]] { return slices.Values(m.chunks) }

// Items are the items of the run, in order; read only.
func (c *Chunk[V]) Items() []Item[V] { return c.items }

// From yields the items whose key is start or after it, in order.
func (m Map[V]) From(start string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for ci := m.find(start); ci < len(m.chunks); ci++ {
			for _, it := range m.chunks[ci].items {
				if it.Key >= start && !yield(it.Key, it.Value) {
					return
				}
			}
		}
	}
}

// Same reports whether m and o are one Map: they share every chunk. False says nothing about their content.
func (m Map[V]) Same(o Map[V]) bool {
	return m.n == o.n && slices.Equal(m.chunks, o.chunks)
}

// Set is m with key set to v; m itself if it is so already.
func (m Map[V]) Set(key string, v V) Map[V] { return m.Apply([]Edit[V]{{Key: key, Value: v}}) }

// Delete is m without key; m itself if it has none.
func (m Map[V]) Delete(key string) Map[V] { return m.Apply([]Edit[V]{{Key: key, Delete: true}}) }

// Digest is the digest of the whole content. item digests one item, join a sequence of digests; each chunk is digested once in its life,
// so one Map type must always be digested with the same functions.
func (m Map[V]) Digest(item func(key string, v V) Sum, join func([]Sum) Sum) Sum {
	sums := make([]Sum, len(m.chunks))
	for i, c := range m.chunks {
		if s := c.sum.Load(); s != nil {
			sums[i] = *s
			continue
		}
		parts := make([]Sum, len(c.items))
		for j, it := range c.items {
			parts[j] = item(it.Key, it.Value)
		}
		sums[i] = join(parts)
		c.sum.Store(&sums[i])
	}
	return join(sums)
}

// Weigh is the sum of weigh over all items; each chunk is weighed once in its life, so one Map type must always be weighed by the same
// function.
func (m Map[V]) Weigh(weigh func(v V) int) int {
	total := 0
	for _, c := range m.chunks {
		w := c.weight.Load()
		if w == 0 {
			w = 1
			for _, it := range c.items {
				w += int64(weigh(it.Value))
			}
			c.weight.Store(w)
		}
		total += int(w - 1)
	}
	return total
}
