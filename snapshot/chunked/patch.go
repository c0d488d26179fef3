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
	var out []*group[V] // those of m, once one of them is replaced
	groups, rest := m.groups(), p.edits
	for len(rest) > 0 {
		at := findGroup(groups, initial(rest[0].Key))
		if at == len(groups) {
			return p.pool.Share(m.Apply(p.edits))
		}
		had := groups[at]
		if out != nil {
			had = out[at] // edits of a chunk before may have replaced it
		}
		next, n := p.group(had, rest)
		if n == 0 {
			return p.pool.Share(m.Apply(p.edits))
		}
		if rest = rest[n:]; next == had {
			continue
		}
		if out == nil {
			out = append(make([]*group[V], 0, len(groups)), groups...)
		}
		out[at] = next
	}
	if out == nil {
		return m
	}
	return Map[V]{&root[V]{groups: out, n: m.root.n}}
}

// group returns g with the first n of edits, which replace values of one chunk; n is 0 if they are of another kind.
func (p *Patch[V]) group(g *group[V], edits []Edit[V]) (next *group[V], n int) {
	at := find(g.chunks, edits[0].Key)
	if at == len(g.chunks) {
		return nil, 0
	}
	c := g.chunks[at]
	now, n := p.chunk(c, edits)
	if n == 0 || now == c {
		return g, n
	}
	next = &group[V]{chunks: append(make([]*Chunk[V], 0, len(g.chunks)), g.chunks...), n: g.n}
	next.chunks[at] = now
	if total := g.measure.Load(); total != nil {
		if old := c.measure.Load(); old != nil {
			next.own = total.minus(*old).Plus(now.measured(p.item))
			next.measure.Store(&next.own)
		}
	}
	return next, n
}

// chunk returns c with the first n of edits; n is 0 if they do not replace values that it has.
func (p *Patch[V]) chunk(c *Chunk[V], edits []Edit[V]) (next *Chunk[V], n int) {
	for n < len(edits) && edits[n].Key <= c.last() {
		n++
	}
	if next, ok := p.made[c]; ok {
		return next, n
	}
	next, replaced, ok := c.replaced(edits[:n])
	if !ok || replaced != n {
		return nil, 0
	}
	if next == c {
		return c, n
	}
	if old := c.measure.Load(); old != nil {
		next.own = *old
		for _, e := range edits[:n] {
			i, _ := c.find(e.Key)
			next.own = next.own.minus(p.item(e.Key, c.items[i].Value)).Plus(p.item(e.Key, e.Value))
		}
		next.measure.Store(&next.own)
	}
	if c.common.Load() {
		next = p.pool.share(next)
		next.common.Store(true)
		if p.made == nil {
			p.made = map[*Chunk[V]]*Chunk[V]{}
		}
		p.made[c] = next
	}
	return next, n
}
