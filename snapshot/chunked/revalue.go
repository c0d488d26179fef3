package chunked

// place is where a chunk is: the indexes of its group, of its block there, and of itself in that.
type place struct{ group, block, chunk int }

// find returns the chunk that a key falls into, and where it is; nil if there is none.
func (m Map[V]) find(key string) (at place, c *Chunk[V]) {
	g, i := m.group(key)
	if g == nil {
		return place{}, nil
	}
	at = place{group: i, block: g.find(key)}
	chunks := g.at(at.block).chunks
	if at.chunk = find(chunks, key); at.chunk == len(chunks) {
		return place{}, nil
	}
	return at, chunks[at.chunk]
}

// replacement is what edits that only give other values to keys do to a chunk.
type replacement struct {
	n           int // how many edits fall into the chunk
	edit, value int // the first that differs from what the chunk has, and the index of that
	ok          bool
	measured    bool
	measure     Measure // what the chunk comes to afterwards, if that is known
}

// none reports whether nothing differs.
func (r *replacement) none() bool { return r.edit == r.n }

// replaces returns what the edits that fall into c do to it, which is ok if they only give other values to keys that it
// has: then it ends where it ended.
func (c *Chunk[V]) replaces(edits []Edit[V]) (r replacement) {
	last := c.last()
	for ; r.n < len(edits) && edits[r.n].Key <= last; r.n++ {
		i, found := c.find(edits[r.n].Key)
		if !found || edits[r.n].Delete {
			return replacement{}
		}
		if r.none() {
			if c.values[i] == edits[r.n].Value {
				r.edit++
			} else {
				r.value = i
			}
		}
	}
	r.ok = r.n > 0 && (r.n == len(edits) || c.natural())
	return r
}

// revalue makes c, which is new, old with the values that r says.
func (c *Chunk[V]) revalue(old *Chunk[V], r replacement, edits []Edit[V]) {
	c.keys, c.values = old.keys, append(c.values, old.values...)
	c.values[r.value] = edits[r.edit].Value
	for _, e := range edits[r.edit+1 : r.n] {
		i, _ := old.find(e.Key)
		c.values[i] = e.Value
	}
	if r.measured {
		c.measure.note(r.measure)
	}
}

// sole is a group of one chunk in one piece of memory with it, for edits make many such. Nothing in it leads to what it
// has replaced or to what stands beside it, so whoever holds a part of it keeps no more than the whole.
type sole[V comparable] struct {
	group group[V]
	chunk Chunk[V]
	few   [2]V // where the values of the chunk lie if they are not more
}

// revalue makes s, which is new, the group old with the values that r says.
func (s *sole[V]) revalue(old *group[V], r replacement, edits []Edit[V]) {
	if c := old.chunks[0]; len(c.values) <= len(s.few) {
		s.chunk.values = s.few[:0]
	} else {
		s.chunk.values = make([]V, 0, len(c.values))
	}
	s.chunk.revalue(old.chunks[0], r, edits)
	s.group.fillWith(old, place{}, &s.chunk)
}

// alone is a Map of one chunk in one piece of memory.
type alone[V comparable] struct {
	root root[V]
	sole[V]
}

// revalued returns m with the values that r says in the chunk at a place.
func (m Map[V]) revalued(at place, r replacement, edits []Edit[V]) Map[V] {
	groups := m.root.groups
	g := groups[at.group]
	switch {
	case g.blocks != nil || len(g.chunks) > 1:
		c := &Chunk[V]{}
		c.revalue(g.at(at.block).chunks[at.chunk], r, edits)
		return m.with(at.group, g.with(at.block, at.chunk, c))
	case len(groups) > 1:
		s := &sole[V]{}
		s.revalue(g, r, edits)
		return m.with(at.group, &s.group)
	}
	a := &alone[V]{}
	a.revalue(g, r, edits)
	a.root.fillWith(m.root, 0, &a.group)
	return Map[V]{&a.root}
}
