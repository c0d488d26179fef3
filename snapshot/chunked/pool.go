package chunked

import (
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
	mu sync.Mutex
	// Guarded by mu.
	known map[string][]weak.Pointer[Chunk[V]] // by the last key of a chunk: those found lately come first
	swept int                                 // how many keys were known after the last sweep
}

// NewPool makes an empty Pool.
func NewPool[V comparable]() *Pool[V] { return &Pool[V]{known: map[string][]weak.Pointer[Chunk[V]]{}} }

const (
	// alike is how many chunks with the same last key a Pool tells apart; it forgets the one that was not found for the
	// longest time.
	alike = 32
	// leastSwept is how many keys a Pool may have before it looks for those whose chunks are gone.
	leastSwept = 64
)

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

// share returns the chunk that stands for all those that equal c: one that is known, or c itself from now on.
func (p *Pool[V]) share(c *Chunk[V]) *Chunk[V] {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.known[c.last()]
	for i, w := range known {
		if k := w.Value(); k != nil && slices.Equal(k.items, c.items) {
			copy(known[1:i+1], known[:i])
			known[0] = w
			return k
		}
	}
	c.pooled.Store(true)
	known = slices.DeleteFunc(known, gone[V])
	if len(known) == alike {
		known = known[:alike-1]
	}
	p.known[c.last()] = slices.Insert(known, 0, weak.Make(c))
	if len(p.known) > 2*p.swept+leastSwept {
		p.sweep()
	}
	return c
}

// Len returns the number of chunks that are known and that a Map holds. What nobody holds leaves after a garbage
// collection.
func (p *Pool[V]) Len() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep()
	for _, known := range p.known {
		n += len(known)
	}
	return n
}

// sweep forgets the chunks that are gone. The caller holds mu.
func (p *Pool[V]) sweep() {
	for key, known := range p.known {
		if known = slices.DeleteFunc(known, gone[V]); len(known) == 0 {
			delete(p.known, key)
		} else {
			p.known[key] = known
		}
	}
	p.swept = len(p.known)
}

func gone[V comparable](w weak.Pointer[Chunk[V]]) bool { return w.Value() == nil }
