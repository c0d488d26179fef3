package chunked

import (
	"math/bits"
	"sort"
)

// maxChunk is the most items of a chunk.
const maxChunk = 256

// A run is what lies between two keys that end a chunk by their hash. Nearly always it is one chunk. But whoever
// chooses keys whose hash never ends one could make it as long as he likes, so a run of more than maxChunk items is cut
// further, where the keys themselves say:
//
//	run ─┬─ keys with 0 in the first bit in which the run's keys differ ─┬─ …
//	     └─ keys with 1 in it ─ at most maxChunk items: a chunk          └─ …
//
// Where a part is cut depends on its keys alone, so Maps with equal content still have equal chunks, on every replica.
// A part in which nothing changes keeps its chunks, so an edit costs the way down to it, not the run.

// segment is a piece of a Map after edits: a whole chunk of the Map before, or items.
type segment[V comparable] struct {
	chunk *Chunk[V] // nil for items
	at    int       // of chunk among the chunks of its block before the edits
	items list[V]
	start int // of the first item in the run
	// the first of the segments before this one from where all are chunks that followed each other before the edits
	chain int
}

// cutter cuts one run into chunks.
type cutter[V comparable] struct {
	old      []*Chunk[V] // of the block before the edits
	segments []segment[V]
	n        int  // items
	natural  bool // the run ends with a key that ends a chunk
	out      []*Chunk[V]
}

// cutRun appends the chunks of a run to out. old are the chunks of its block before the edits.
func cutRun[V comparable](out, old []*Chunk[V], run []segment[V]) []*Chunk[V] {
	c := &cutter[V]{old: old, segments: run, out: out}
	for i := range run {
		s := &run[i]
		s.start, s.chain = c.n, i
		c.n += s.items.len()
		if i > 0 && s.chunk != nil && run[i-1].chunk != nil && run[i-1].at+1 == s.at {
			s.chain = run[i-1].chain
		}
	}
	if c.n > 0 {
		c.natural = endOf(c.key(c.n-1)) != endsNothing
		c.cut(0, c.n)
	}
	return c.out
}

// cut appends the chunks of the items from lo to hi, of which there is one at least.
func (c *cutter[V]) cut(lo, hi int) {
	if hi-lo <= maxChunk {
		c.leaf(lo, hi)
		return
	}
	differs := differ(c.key(lo), c.key(hi-1))
	if chunks, ok := c.had(lo, hi, differs); ok {
		c.out = append(c.out, chunks...)
		return
	}
	middle := lo + sort.Search(hi-lo, func(i int) bool { return bit(c.key(lo+i), differs) })
	c.cut(lo, middle)
	c.cut(middle, hi)
}

// leaf appends one chunk; the one from before if it is the same.
func (c *cutter[V]) leaf(lo, hi int) {
	at := c.find(lo)
	if s := &c.segments[at]; s.chunk != nil && s.start == lo && lo+s.items.len() == hi {
		c.out = append(c.out, s.chunk)
		return
	}
	items := newList[V](hi - lo)
	for ; items.len() < hi-lo; at++ {
		s := &c.segments[at]
		items.addAll(s.items.part(lo+items.len()-s.start, min(s.items.len(), hi-s.start)))
	}
	c.out = append(c.out, newChunk(items, c.natural && hi == c.n))
}

// had returns the chunks of the items from lo to hi if they were a part of a run before too, and nothing has changed in
// it. A part is all keys of a run that are equal before the bit in which they differ: so those that came before and
// after it in the run must not be equal up to there.
func (c *cutter[V]) had(lo, hi, differs int) ([]*Chunk[V], bool) {
	first, last := c.find(lo), c.find(hi-1)
	a, b := &c.segments[first], &c.segments[last]
	if a.chunk == nil || b.chunk == nil || a.start != lo || b.start+b.items.len() != hi || b.chain > first {
		return nil, false
	}
	if a.at > 0 && !c.old[a.at-1].natural() && differ(c.old[a.at-1].last(), c.key(lo)) >= differs {
		return nil, false
	}
	if next := b.at + 1; !b.chunk.natural() && next < len(c.old) &&
		differ(c.key(hi-1), c.old[next].first()) >= differs {
		return nil, false
	}
	return c.old[a.at : b.at+1], true
}

// find returns the segment that has item i.
func (c *cutter[V]) find(i int) int {
	return sort.Search(len(c.segments), func(s int) bool { return c.segments[s].start+c.segments[s].items.len() > i })
}

// key returns the key of item i.
func (c *cutter[V]) key(i int) string {
	s := &c.segments[c.find(i)]
	return s.items.keys[i-s.start]
}

// differ returns the first bit in which two keys differ. Each byte has nine: the first tells that the key has not
// ended.
func differ(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if x := a[i] ^ b[i]; x != 0 {
			return i*9 + 1 + bits.LeadingZeros8(x)
		}
	}
	return n * 9
}

// bit returns one bit of a key, counted like those of differ. Keys are in the order of their bits.
func bit(key string, at int) bool {
	i, within := at/9, at%9
	switch {
	case i >= len(key):
		return false
	case within == 0:
		return true
	}
	return key[i]&(0x80>>(within-1)) != 0
}
