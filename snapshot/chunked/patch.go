package chunked

// Patch is edits that are to be done to many Maps: Maps that share a chunk share what becomes of it. It is for one
// goroutine.
type Patch[V comparable] struct {
	edits []Edit[V]
	pool  *Pool[V]
	item  func(key string, v V) Measure
	made  map[*Chunk[V]]*Chunk[V] // what became of chunks that a Pool has given to several Maps
}

// NewPatch makes a Patch of edits, in any order; of several edits of one key the last counts. What it makes of chunks
// that several Maps have is known to pool. item is what the Maps are measured by.
func NewPatch[V comparable](edits []Edit[V], pool *Pool[V], item func(key string, v V) Measure) *Patch[V] {
	return &Patch[V]{edits: lastPerKey(edits), pool: pool, item: item}
}

// Of returns m with the edits applied; m itself if nothing changes.
func (p *Patch[V]) Of(m Map[V]) Map[V] {
	next := m
	for rest := p.edits; len(rest) > 0; {
		g, at := next.group(rest[0].Key)
		if g == nil {
			return p.pool.Share(m.Apply(p.edits))
		}
		now, n := p.group(g, rest)
		if n == 0 {
			return p.pool.Share(m.Apply(p.edits))
		}
		if rest = rest[n:]; now != g {
			next = next.with(at, now)
		}
	}
	return next
}

// group returns g with the first n of edits, which replace values of one chunk; n is 0 if they are of another kind.
func (p *Patch[V]) group(g *group[V], edits []Edit[V]) (next *group[V], n int) {
	block := g.find(edits[0].Key)
	chunks := g.at(block).chunks
	at := find(chunks, edits[0].Key)
	if at == len(chunks) {
		return nil, 0
	}
	now, n := p.chunk(chunks[at], edits)
	if n == 0 || now == chunks[at] {
		return g, n
	}
	if _, ok := chunks[at].measure.load(); ok {
		now.measured(p.item)
	}
	return g.with(block, at, now), n
}

// chunk returns c with the first n of edits; n is 0 if they do not replace values that it has.
func (p *Patch[V]) chunk(c *Chunk[V], edits []Edit[V]) (next *Chunk[V], n int) {
	for n < len(edits) && edits[n].Key <= c.last() {
		n++
	}
	common := c.common.Load()
	if common {
		if next, ok := p.made[c]; ok {
			return next, n
		}
	}
	next, replaced, ok := c.replaced(edits[:n])
	if !ok || replaced != n {
		return nil, 0
	}
	if next == c {
		return c, n
	}
	if of, ok := c.measure.load(); ok {
		for _, e := range edits[:n] {
			i, _ := c.find(e.Key)
			of = of.minus(p.item(e.Key, c.values[i])).Plus(p.item(e.Key, e.Value))
		}
		next.measure.note(of)
	}
	if common {
		next = p.pool.share(next)
		next.common.Store(true)
		if p.made == nil {
			p.made = map[*Chunk[V]]*Chunk[V]{}
		}
		p.made[c] = next
	}
	return next, n
}
