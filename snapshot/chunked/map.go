// Package chunked is a persistent sorted map that is cheap to copy, to compare and to share.
//
// A Map is a list of groups, one for each first byte of its keys; a group is a list of blocks of some 16 chunks, and a
// block is a list of chunks of some 64 items, sorted by key:
//
//	Map ─┬─ group i ─── block ─── chunk inbound|…      Apply copies the lists on the way to the chunks that its edits
//	     └─ group o ─┬─ block ─┬─ chunk outbound|a…    fall into, and these chunks; all else is shared with the
//	                 │         └─ chunk outbound|k…    predecessor, so Diff skips it by pointer.
//	                 └─ block ─── chunk outbound|n…
//
// Where a chunk ends depends on the keys alone (a key whose hash says so is the last of its chunk, and so is the last
// of its group; and where no hash says so for too long, the chunk is cut by the bits of its keys: see maxChunk), and so
// it is with blocks: two Maps with equal content have equal chunks however they came to be, so a digest over chunk
// digests is a digest of the content. Keys that begin alike belong together: what one client has of its own (inbound|…,
// virtualInbound) gets a small chunk beside those that all share, and its Map costs the same however many those are.
//
// Maps and their chunks are immutable; the zero Map is empty. All functions are safe for concurrent use.
package chunked

import (
	"hash/maphash"
	"iter"
	"slices"
	"sort"
	"sync/atomic"
)

// Map is a sorted map from string to V. Values are compared with ==. It is one pointer, for many hold several.
type Map[V comparable] struct{ root *root[V] }

// root is what a Map that is not empty points to.
type root[V comparable] struct {
	groups  []*group[V]
	n       int
	few     [2]*group[V] // where groups lies if it is short
	measure known        // what the items come to
}

// Chunk is a run of items that Maps share: one pointer, one content.
type Chunk[V comparable] struct {
	// Immutable after New and Apply.
	keys   *keys // those that a chunk has in common with the one that it became of, if only values differ
	values []V

	measure        known // what the items come to
	pooled, common atomic.Bool
	digest         atomic.Pointer[digest]
}

// keys are those of a chunk, in order. Immutable.
type keys struct {
	list []string
	end  end
}

// digest is what Digest and Weigh found of a chunk.
type digest struct {
	sum    Sum
	weight int
	summed bool
	weighs bool
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

// end says what a key ends whatever comes after it.
type end uint8

const (
	endsNothing end = iota
	endsChunk
	endsBlock // and a chunk
)

const chunkSize, blockSize = 64, 16

// endOf returns what a key ends: one in chunkSize a chunk, and one in blockSize of these a block, by FNV-1a with its
// high bits mixed down, so that all replicas agree.
func endOf(key string) end {
	h := uint64(14695981039346656037)
	for i := 0; i < len(key); i++ {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	switch h >>= 33; {
	case h%chunkSize != 0:
		return endsNothing
	case h/chunkSize%blockSize != 0:
		return endsChunk
	}
	return endsBlock
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
	if len(groups) <= len(r.few) {
		r.groups = r.few[:copy(r.few[:], groups)]
	}
	for _, g := range groups {
		r.n += g.n
	}
	return Map[V]{r}
}

// with returns m with another group in the place of one.
func (m Map[V]) with(at int, g *group[V]) Map[V] {
	r := &root[V]{}
	r.fillWith(m.root, at, g)
	return Map[V]{r}
}

// fillWith makes r, which is new, old with another group in the place of one.
func (r *root[V]) fillWith(old *root[V], at int, g *group[V]) {
	if r.groups = r.few[:]; len(old.groups) > len(r.few) {
		r.groups = make([]*group[V], len(old.groups))
	}
	r.groups = r.groups[:copy(r.groups, old.groups)]
	r.groups[at] = g
	r.n = old.n - old.groups[at].n + g.n
	r.measure.replaced(&old.measure, old.groups[at].total(), g.total())
}

// Get returns the value of key.
func (m Map[V]) Get(key string) (V, bool) {
	var zero V
	g, _ := m.group(key)
	if g == nil {
		return zero, false
	}
	chunks := g.at(g.find(key)).chunks
	if c := find(chunks, key); c < len(chunks) {
		if i, ok := chunks[c].find(key); ok {
			return chunks[c].values[i], true
		}
	}
	return zero, false
}

// group returns the group that a key falls into, and where it is, or would be: nil if there is none.
func (m Map[V]) group(key string) (g *group[V], at int) {
	groups, first := m.groups(), initialOf(key)
	if at = findGroup(groups, first); at < len(groups) && groups[at].initial == first {
		return groups[at], at
	}
	return nil, at
}

// findGroup returns the index of the first group that does not come before the one of a first byte.
func findGroup[V comparable](groups []*group[V], first initial) int {
	for i, g := range groups { // there are few
		if g.initial >= first {
			return i
		}
	}
	return len(groups)
}

// find returns the index of the chunk that key falls into: the first whose last key is not before it.
func find[V comparable](chunks []*Chunk[V], key string) int {
	return sort.Search(len(chunks), func(i int) bool { return chunks[i].last() >= key })
}

// initial is the first byte of a key, or none, which comes before all others.
type initial int16

func initialOf(key string) initial {
	if key == "" {
		return -1
	}
	return initial(key[0])
}

func (c *Chunk[V]) first() string { return c.keys.list[0] }

func (c *Chunk[V]) last() string { return c.keys.list[len(c.keys.list)-1] }

// natural reports whether the hash of the last key ends the chunk.
func (c *Chunk[V]) natural() bool { return c.keys.end != endsNothing }

func (c *Chunk[V]) find(key string) (int, bool) { return slices.BinarySearch(c.keys.list, key) }

func (c *Chunk[V]) items() list[V] { return list[V]{c.keys.list, c.values} }

// Equal reports whether two chunks have the same items.
func (c *Chunk[V]) Equal(o *Chunk[V]) bool {
	return (c.keys == o.keys || slices.Equal(c.keys.list, o.keys.list)) && slices.Equal(c.values, o.values)
}

// Len returns the number of items of the run.
func (c *Chunk[V]) Len() int { return len(c.values) }

// Keys returns those of the items of the run, in order; read only.
func (c *Chunk[V]) Keys() []string { return c.keys.list }

// Values returns those of the items of the run, in the order of their keys; read only.
func (c *Chunk[V]) Values() []V { return c.values }

// newChunk makes a chunk of items, of which natural tells whether the hash of the last key ends it.
func newChunk[V comparable](items list[V], natural bool) *Chunk[V] {
	k := &keys{list: items.keys}
	if natural {
		k.end = endOf(items.last())
	}
	return &Chunk[V]{keys: k, values: items.values}
}

// list is items by key.
type list[V comparable] struct {
	keys   []string
	values []V
}

func newList[V comparable](n int) list[V] { return list[V]{make([]string, 0, n), make([]V, 0, n)} }

func (l *list[V]) len() int { return len(l.keys) }

// last returns the last key; the first of all if there is none.
func (l *list[V]) last() string {
	if len(l.keys) == 0 {
		return ""
	}
	return l.keys[len(l.keys)-1]
}

// part returns the items from i to j.
func (l *list[V]) part(i, j int) list[V] { return list[V]{l.keys[i:j], l.values[i:j]} }

func (l *list[V]) add(key string, v V) { l.keys, l.values = append(l.keys, key), append(l.values, v) }

func (l *list[V]) addAll(o list[V]) {
	l.keys, l.values = append(l.keys, o.keys...), append(l.values, o.values...)
}

// All yields the items in order of their keys.
func (m Map[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for c := range m.Chunks() {
			for i, k := range c.keys.list {
				if !yield(k, c.values[i]) {
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
			for i := range g.len() {
				for _, c := range g.at(i).chunks {
					if !yield(c) {
						return
					}
				}
			}
		}
	}
}

// From yields the items whose key is start or after it, in order.
func (m Map[V]) From(start string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		groups := m.groups()
		for _, g := range groups[findGroup(groups, initialOf(start)):] {
			for i := g.find(start); i < g.len(); i++ {
				chunks := g.at(i).chunks
				for _, c := range chunks[find(chunks, start):] {
					from, _ := c.find(start)
					for j := from; j < len(c.values); j++ {
						if !yield(c.keys.list[j], c.values[j]) {
							return
						}
					}
				}
			}
		}
	}
}

// Same reports whether m and o are one Map: they share every chunk. False says nothing about their content.
func (m Map[V]) Same(o Map[V]) bool {
	return m.root == o.root || m.Len() == o.Len() && slices.EqualFunc(m.groups(), o.groups(), (*group[V]).same)
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
		d := c.digest.Load()
		if d == nil || !d.summed {
			parts := make([]Sum, len(c.values))
			for j, k := range c.keys.list {
				parts[j] = item(k, c.values[j])
			}
			d = c.note(digest{sum: join(parts), summed: true})
		}
		sums = append(sums, d.sum)
	}
	return join(sums)
}

// Weigh returns the sum of weigh over all items; each chunk is weighed once in its life, so one Map type must always be
// weighed by the same function.
func (m Map[V]) Weigh(weigh func(key string, v V) int) int {
	total := 0
	for c := range m.Chunks() {
		d := c.digest.Load()
		if d == nil || !d.weighs {
			w := 0
			for j, k := range c.keys.list {
				w += weigh(k, c.values[j])
			}
			d = c.note(digest{weight: w, weighs: true})
		}
		total += d.weight
	}
	return total
}

// note keeps what was found of a chunk, beside what is known already, and returns both.
func (c *Chunk[V]) note(found digest) *digest {
	next := found
	if had := c.digest.Load(); had != nil {
		if next = *had; found.summed {
			next.sum, next.summed = found.sum, true
		}
		if found.weighs {
			next.weight, next.weighs = found.weight, true
		}
	}
	c.digest.Store(&next)
	return &next
}
