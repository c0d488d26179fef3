package chunked

import (
	"hash/maphash"
	"slices"
	"sync"
	"weak"
)

// Pool finds the chunks that Maps of one kind have in common although the Maps were made apart: from nothing, or each
// from its own predecessor by an equal edit. Maps that share their chunks share their memory, their digests, and
// whatever else is kept for each chunk.
//
// A Pool keeps no chunk alive. It is safe for concurrent use.
type Pool[V comparable] struct {
	seed maphash.Seed

	mu sync.Mutex
	// Guarded by mu.
	known map[uint64]weak.Pointer[Chunk[V]] // by the hash of their items
	swept int                               // how many were known after the last sweep
}

// NewPool makes an empty Pool.
func NewPool[V comparable]() *Pool[V] {
	return &Pool[V]{seed: maphash.MakeSeed(), known: map[uint64]weak.Pointer[Chunk[V]]{}}
}

// leastSwept is how many chunks a Pool may have known before it looks for those that are gone.
const leastSwept = 64

// Share returns m with every chunk replaced by an equal one that an earlier Map has, where there is one; m itself if
// there is none. Its cost is that of the chunks that the Pool has not seen yet: what m has from its predecessor is
// skipped.
func (p *Pool[V]) Share(m Map[V]) Map[V] {
	var groups []*group[V] // those of m, once one of them is replaced
	for i, g := range m.groups() {
		if next := p.shareGroup(g); next != g {
			if groups == nil {
				groups = slices.Clone(m.groups())
			}
			groups[i] = next
		}
	}
	if groups == nil {
		return m
	}
	return newMap(groups)
}

func (p *Pool[V]) shareGroup(g *group[V]) *group[V] {
	next := g
	for i, c := range g.chunks {
		if c.pooled.Load() {
			continue
		}
		if known := p.share(c); known != c {
			if next == g {
				next = &group[V]{chunks: slices.Clone(g.chunks), n: g.n}
			}
			next.chunks[i] = known
		}
	}
	return next
}

// share returns the chunk that stands for all those that equal c: one that is known, or c itself from now on. Of two
// chunks whose items differ and have one hash, the second is known to nobody.
func (p *Pool[V]) share(c *Chunk[V]) *Chunk[V] {
	h := p.hash(c)
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := p.known[h].Value(); k != nil {
		if k == c {
			return c
		}
		if slices.Equal(k.items, c.items) {
			k.common.Store(true)
			return k
		}
		return c
	}
	c.pooled.Store(true)
	p.known[h] = weak.Make(c)
	if len(p.known) > 2*p.swept+leastSwept {
		p.sweep()
	}
	return c
}

func (p *Pool[V]) hash(c *Chunk[V]) uint64 {
	var h maphash.Hash
	h.SetSeed(p.seed)
	for i := range c.items {
		_, _ = h.WriteString(c.items[i].Key)
		maphash.WriteComparable(&h, c.items[i].Value)
	}
	return h.Sum64()
}

// Len returns the number of chunks that are known and that a Map holds. What nobody holds leaves after a garbage
// collection.
func (p *Pool[V]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep()
	return len(p.known)
}

// sweep forgets the chunks that are gone. The caller holds mu.
func (p *Pool[V]) sweep() {
	for h, w := range p.known {
		if w.Value() == nil {
			delete(p.known, h)
		}
	}
	p.swept = len(p.known)
}
