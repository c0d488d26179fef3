package chunked

import "slices"

// Transition is what differs between two Maps, to be done to other Maps that have most chunks in common with the first:
// where one of them has a chunk of the first, it takes what became of it in the second by pointer. Immutable.
type Transition[V comparable] struct {
	old, now Map[V]
	edits    []Edit[V]
	groups   []groupTransition[V]
}

// groupTransition is what differs between the items of one group. old or now is nil where one Map has none.
type groupTransition[V comparable] struct {
	initial  string
	old, now *group[V]
	edits    []Edit[V]
	runs     []runTransition[V]
}

// runTransition are chunks that were replaced. They begin where a run begins and end where one ends; where they do not,
// there are only the edits.
type runTransition[V comparable] struct {
	old, now []*Chunk[V]
	edits    []Edit[V] // what differs between the two
	grown    Measure   // what now comes to beyond old
	measured bool
}

// NewTransition finds what differs between old and now.
func NewTransition[V comparable](old, now Map[V]) *Transition[V] {
	t := &Transition[V]{old: old, now: now}
	if old.root == now.root {
		return t
	}
	now.Diff(old, func(c Change[V]) {
		t.edits = append(t.edits, Edit[V]{Key: c.Key, Value: c.New, Delete: !c.InNew})
	})
	for rest := t.edits; len(rest) > 0; {
		n := 1
		for n < len(rest) && initial(rest[n].Key) == initial(rest[0].Key) {
			n++
		}
		g := groupTransition[V]{initial: initial(rest[0].Key), edits: rest[:n]}
		g.old, g.now = old.group(g.initial), now.group(g.initial)
		if g.old != nil && g.now != nil {
			g.findRuns()
		}
		t.groups, rest = append(t.groups, g), rest[n:]
	}
	return t
}

// group returns the group of a first byte, or nil.
func (m Map[V]) group(first string) *group[V] {
	groups := m.groups()
	if at := findGroup(groups, first); at < len(groups) && groups[at].initial() == first {
		return groups[at]
	}
	return nil
}

// Edits returns the differences, by key; read only.
func (t *Transition[V]) Edits() []Edit[V] { return t.edits }

// Empty reports whether nothing differs.
func (t *Transition[V]) Empty() bool { return len(t.edits) == 0 }

// findRuns pairs the chunks that differ with what became of them.
func (g *groupTransition[V]) findRuns() {
	old, now, edits := g.old.chunks, g.now.chunks, g.edits
	within := false // a run, which began in a chunk that both have
	for len(old)+len(now) > 0 {
		if len(old) > 0 && len(now) > 0 && old[0] == now[0] {
			within = !old[0].natural
			old, now = old[1:], now[1:]
			continue
		}
		i, j := runEnd(old, now)
		r := runTransition[V]{old: old[:i], now: now[:j]}
		if within {
			r.old, r.now = nil, nil
		}
		n := len(edits)
		if i < len(old) || j < len(now) {
			last := max(old[i-1].last(), now[j-1].last())
			n = 0
			for n < len(edits) && edits[n].Key <= last {
				n++
			}
		}
		r.edits, edits = edits[:n], edits[n:]
		r.compare()
		g.runs = append(g.runs, r)
		old, now, within = old[i:], now[j:], false
	}
}

// runEnd returns the first place at which both lists have come to the end of a run at the same key, or their ends.
func runEnd[V comparable](old, now []*Chunk[V]) (i, j int) {
	if len(old) == 0 || len(now) == 0 { // at the end of the lists
		return len(old), len(now)
	}
	for i, j = 1, 1; ; {
		a, b := old[i-1], now[j-1]
		switch {
		case a.last() == b.last() && a.natural && b.natural:
			return i, j
		case i == len(old) && j == len(now):
			return i, j
		case i < len(old) && (j == len(now) || a.last() <= b.last()):
			i++
		default:
			j++
		}
	}
}

// compare works out what the replacement does to the measure of whoever has it, if that is known of all.
func (r *runTransition[V]) compare() {
	for _, c := range r.old {
		m := c.measure.Load()
		if m == nil {
			return
		}
		r.grown = r.grown.minus(*m)
	}
	for _, c := range r.now {
		m := c.measure.Load()
		if m == nil {
			return
		}
		r.grown = r.grown.Plus(*m)
	}
	r.measured = true
}

// Of returns m with the differences applied.
func (t *Transition[V]) Of(m Map[V]) Map[V] {
	switch {
	case m.root == t.old.root:
		return t.now
	case len(t.groups) == 0:
		return m
	}
	groups := m.groups()
	out := make([]*group[V], 0, len(groups)+len(t.groups))
	changed := false
	for i := range t.groups {
		g := &t.groups[i]
		to := findGroup(groups, g.initial)
		out, groups = append(out, groups[:to]...), groups[to:]
		var had *group[V]
		if len(groups) > 0 && groups[0].initial() == g.initial {
			had, groups = groups[0], groups[1:]
		}
		next := g.of(had)
		if next != nil {
			out = append(out, next)
		}
		changed = changed || next != had
	}
	if !changed {
		return m
	}
	return newMap(append(out, groups...))
}

// of returns had, which may be nil, with the differences applied; nil if nothing is left.
func (g *groupTransition[V]) of(had *group[V]) *group[V] {
	if had == g.old {
		return g.now
	}
	if had == nil || g.old == nil || g.now == nil {
		if next := had.edited(g.edits); next != had {
			return g.adopt(next)
		}
		return had
	}
	next := &group[V]{chunks: make([]*Chunk[V], 0, len(had.chunks)+2), n: had.n}
	rest, at := []Edit[V](nil), 0
	total, grown := had.measure.Load(), Measure{}
	for i := range g.runs {
		r := &g.runs[i]
		from, ok := r.in(had.chunks, at)
		if !ok {
			rest = append(rest, r.edits...)
			continue
		}
		next.chunks = append(append(next.chunks, had.chunks[at:from]...), r.now...)
		next.n += count(r.now) - count(r.old)
		at = from + len(r.old)
		if grown = grown.Plus(r.grown); !r.measured {
			total = nil
		}
	}
	next.chunks = append(next.chunks, had.chunks[at:]...)
	if len(rest) > 0 {
		return g.adopt(next.edited(rest))
	}
	if total != nil {
		next.own = total.Plus(grown)
		next.measure.Store(&next.own)
	}
	return next
}

// adopt returns next, which is new and may be nil, with the chunks of the second Map where they are equal.
func (g *groupTransition[V]) adopt(next *group[V]) *group[V] {
	if next == nil || g.now == nil {
		return next
	}
	for i, c := range next.chunks {
		at := find(g.now.chunks, c.last())
		if at < len(g.now.chunks) && g.now.chunks[at] != c && slices.Equal(g.now.chunks[at].items, c.items) {
			next.chunks[i] = g.now.chunks[at]
		}
	}
	return next
}

// in returns where chunks, from at on, have the replaced ones, and whether the new ones may stand there instead.
func (r *runTransition[V]) in(chunks []*Chunk[V], at int) (from int, ok bool) {
	switch {
	case len(r.old) > 0:
		from = at + find(chunks[at:], r.old[0].last())
	case len(r.now) > 0:
		from = at + find(chunks[at:], r.now[0].items[0].Key)
	default:
		return 0, false
	}
	to := from + len(r.old)
	if to > len(chunks) || !slices.Equal(chunks[from:to], r.old) {
		return 0, false
	}
	if from > 0 && !chunks[from-1].natural {
		return 0, false
	}
	return from, to == len(chunks) || endsNaturally(r.old) && endsNaturally(r.now)
}

func endsNaturally[V comparable](chunks []*Chunk[V]) bool {
	return len(chunks) > 0 && chunks[len(chunks)-1].natural
}

// edited returns g, which may be nil, with edits; nil if nothing is left, and g itself if nothing changes.
func (g *group[V]) edited(edits []Edit[V]) *group[V] {
	if g == nil {
		g = &group[V]{}
	}
	next, _ := g.apply(edits)
	if next.n == 0 {
		return nil
	}
	return next
}

func count[V comparable](chunks []*Chunk[V]) (n int) {
	for _, c := range chunks {
		n += len(c.items)
	}
	return n
}
