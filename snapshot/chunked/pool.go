package chunked

import (
	"hash/maphash"
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
	next := m
	for i, g := range m.groups() {
		for b := range g.len() {
			for at, c := range g.at(b).chunks {
				if c.pooled.Load() {
					continue
				}
				known := p.share(c)
				if known == c {
					continue
				}
				if next.root == m.root {
					next = m.with(i, g.with(b, at, known))
				} else { // nobody else has it yet
					next.root.groups[i] = next.root.groups[i].with(b, at, known)
				}
			}
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
		if k.Equal(c) {
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
	for i, k := range c.keys.list {
		_, _ = h.WriteString(k)
		maphash.WriteComparable(&h, c.values[i])
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
