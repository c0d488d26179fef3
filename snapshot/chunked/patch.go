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
		at, c := next.find(rest[0].Key)
		if c == nil {
			return p.pool.Share(m.Apply(p.edits))
		}
		now, n := p.chunk(next, at, rest)
		if n == 0 {
			return p.pool.Share(m.Apply(p.edits))
		}
		next, rest = now, rest[n:]
	}
	return next
}

// chunk returns m with the first n of edits, which fall into its chunk c at a place; n is 0 if they do not replace
// values that it has.
func (p *Patch[V]) chunk(m Map[V], at place, edits []Edit[V]) (next Map[V], n int) {
	g := m.root.groups[at.group]
	c := g.at(at.block).chunks[at.chunk]
	common := c.common.Load()
	if common {
		if now, ok := p.made[c]; ok {
			return m.with(at.group, g.with(at.block, at.chunk, now)), within(edits, c.last())
		}
	}
	r := c.replaces(edits)
	switch {
	case !r.ok:
		return m, 0
	case r.none():
		return m, r.n
	}
	if r.measure, r.measured = c.measure.load(); r.measured {
		for _, e := range edits[r.edit:r.n] {
			i, _ := c.find(e.Key)
			r.measure = r.measure.minus(p.item(e.Key, c.values[i])).Plus(p.item(e.Key, e.Value))
		}
	}
	if !common {
		return m.revalued(at, r, edits), r.n
	}
	now := &Chunk[V]{}
	now.revalue(c, r, edits)
	now = p.pool.share(now)
	now.common.Store(true)
	if p.made == nil {
		p.made = map[*Chunk[V]]*Chunk[V]{}
	}
	p.made[c] = now
	return m.with(at.group, g.with(at.block, at.chunk, now)), r.n
}
