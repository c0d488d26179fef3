package chunked

import (
	"slices"
	"sort"
)

// Transition is what differs between two Maps, to be done to other Maps that have most chunks in common with the first:
// where one of them has a block or a chunk of the first, it takes what became of it in the second by pointer.
// Immutable.
type Transition[V comparable] struct {
	old, now Map[V]
	edits    []Edit[V]
	groups   []groupTransition[V]
}

// groupTransition is what differs between the items of one group. old or now is nil where one Map has none.
type groupTransition[V comparable] struct {
	initial  initial
	old, now *group[V]
	edits    []Edit[V]
	blocks   []blockTransition[V]
}

// blockTransition is what differs between blocks that became others, as far as one became one; where blocks were joined
// or fell apart, there are only the edits.
type blockTransition[V comparable] struct {
	old, now *block[V]
	edits    []Edit[V]
	runs     []runTransition[V]
}

// runTransition are chunks that were replaced. They begin where a run begins and end where one ends; where they do not,
// there are none, and whoever has the block takes the edits.
type runTransition[V comparable] struct {
	old, now []*Chunk[V]
	items    int     // how many more now has than old
	grown    Measure // what now comes to beyond old
	measured bool
	edits    []Edit[V] // what was done to the chunk, if it is one whose values alone differ
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
		for n < len(rest) && initialOf(rest[n].Key) == initialOf(rest[0].Key) {
			n++
		}
		g := groupTransition[V]{initial: initialOf(rest[0].Key), edits: rest[:n]}
		g.old, _ = old.group(rest[0].Key)
		g.now, _ = now.group(rest[0].Key)
		if g.old != nil && g.now != nil {
			g.findBlocks()
		}
		t.groups, rest = append(t.groups, g), rest[n:]
	}
	return t
}

// Edits returns the differences, by key; read only.
func (t *Transition[V]) Edits() []Edit[V] { return t.edits }

// Empty reports whether nothing differs.
func (t *Transition[V]) Empty() bool { return len(t.edits) == 0 }

// findBlocks pairs the blocks that differ with what became of them.
func (g *groupTransition[V]) findBlocks() {
	old, now, edits := g.old.list(), g.now.list(), g.edits
	for len(edits) > 0 {
		if len(old) > 0 && len(now) > 0 && old[0] == now[0] {
			old, now = old[1:], now[1:]
			continue
		}
		i, j := pair(old, now, (*block[V]).last)
		n := len(edits)
		if i < len(old) || j < len(now) {
			n = within(edits, max(lastOf(old[:i]), lastOf(now[:j])))
		}
		b := blockTransition[V]{edits: edits[:n]}
		if i == 1 && j == 1 {
			b.old, b.now = old[0], now[0]
			b.findRuns()
		}
		if n > 0 {
			g.blocks = append(g.blocks, b)
		}
		old, now, edits = old[i:], now[j:], edits[n:]
	}
}

// lastOf returns the last key of blocks, or the first of all keys if there are none.
func lastOf[V comparable](blocks []*block[V]) string {
	if len(blocks) == 0 {
		return ""
	}
	return blocks[len(blocks)-1].last()
}

// findRuns pairs the chunks that differ with what became of them.
func (b *blockTransition[V]) findRuns() {
	old, now := b.old.chunks, b.now.chunks
	within := false // a run, which began in a chunk that both have
	for len(old)+len(now) > 0 {
		if len(old) > 0 && len(now) > 0 && old[0] == now[0] {
			within = !old[0].natural()
			old, now = old[1:], now[1:]
			continue
		}
		i, j := runEnd(old, now)
		r := runTransition[V]{old: old[:i], now: now[:j], items: count(now[:j]) - count(old[:i])}
		if within {
			r.old, r.now = nil, nil
		}
		r.compare()
		r.findEdits(b.edits)
		b.runs = append(b.runs, r)
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
		case a.last() == b.last() && a.natural() && b.natural():
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

// findEdits finds those of the block's edits that gave other values to the items of one chunk, if that is all.
func (r *runTransition[V]) findEdits(edits []Edit[V]) {
	if len(r.old) == 1 && len(r.now) == 1 && r.old[0].keys == r.now[0].keys {
		from := sort.Search(len(edits), func(i int) bool { return edits[i].Key >= r.old[0].first() })
		r.edits = edits[from:within(edits, r.old[0].last())]
	}
}

// compare works out what the replacement does to the measure of whoever has it, if that is known of all.
func (r *runTransition[V]) compare() {
	for _, c := range r.old {
		m, ok := c.measure.load()
		if !ok {
			return
		}
		r.grown = r.grown.minus(m)
	}
	for _, c := range r.now {
		m, ok := c.measure.load()
		if !ok {
			return
		}
		r.grown = r.grown.Plus(m)
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
	if len(t.groups) == 1 { // and Maps have few
		g := &t.groups[0]
		if had, at := m.group(g.edits[0].Key); had != nil {
			switch next := g.of(had); next {
			case nil:
			case had:
				return m
			default:
				return m.with(at, next)
			}
		}
	}
	groups := m.groups()
	out := make([]*group[V], 0, len(groups)+len(t.groups))
	changed := false
	for i := range t.groups {
		g := &t.groups[i]
		to := findGroup(groups, g.initial)
		out, groups = append(out, groups[:to]...), groups[to:]
		var had *group[V]
		if len(groups) > 0 && groups[0].initial == g.initial {
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
	next, rest := had, g.edits
	if had != nil && g.old != nil && g.now != nil {
		rest = nil
		for i := range g.blocks {
			b := &g.blocks[i]
			if now := b.of(next, next.find(b.edits[0].Key)); now != nil {
				next = now
			} else {
				rest = append(rest, b.edits...)
			}
		}
	}
	if len(rest) == 0 {
		return next
	}
	return g.adopt(next.apply(rest), next)
}

// of returns a group with the differences in the place of its block at, or nil if they cannot be taken by pointer.
func (b *blockTransition[V]) of(g *group[V], at int) *group[V] {
	old, last := g.at(at), at == g.len()-1
	if b.old == nil || !last && (!b.now.ends() || b.edits[len(b.edits)-1].Key > old.last()) {
		return nil
	}
	next := &group[V]{initial: g.initial}
	if g.blocks == nil {
		if !b.fill(&next.block, old) {
			return nil
		}
		return next
	}
	now := b.now
	if old != b.old {
		if now = new(block[V]); !b.fill(now, old) {
			return nil
		}
	}
	next.blocks, next.n = slices.Clone(g.blocks), g.n-old.n+now.n
	next.blocks[at] = now
	next.measure.replaced(&g.measure, old.total(), now.total())
	return next
}

// fill makes next what the differences make of old. It reports false if old has not the chunks that were replaced, or
// if the new ones cannot stand there instead. What ended a block ends one still: of has seen to that.
func (b *blockTransition[V]) fill(next, old *block[V]) bool {
	total, measured := old.total().load()
	chunks, done := make([]*Chunk[V], 0, max(1, len(old.chunks)+b.more())), 0
	next.n = old.n
	for i := range b.runs {
		r := &b.runs[i]
		from, ok := r.in(old.chunks, done)
		now := r.now
		if !ok {
			if from, now = r.revalued(old.chunks, done); now == nil {
				return false
			}
		}
		if chunks, ok = joined(chunks, old.chunks[done:from]); !ok {
			return false
		}
		if chunks, ok = joined(chunks, now); !ok {
			return false
		}
		done = from + len(r.old)
		next.n += r.items
		total, measured = total.Plus(r.grown), measured && r.measured
	}
	chunks, ok := joined(chunks, old.chunks[done:])
	if !ok || len(chunks) == 0 {
		return false
	}
	if next.set(chunks); measured {
		next.total().note(total)
	}
	return true
}

// revalued returns what the run makes of the one of chunks, from at on, that has more or less items than the replaced
// one, but those whose values differ as they were; nil if there is none.
func (r *runTransition[V]) revalued(chunks []*Chunk[V], at int) (from int, now []*Chunk[V]) {
	if len(r.edits) == 0 {
		return 0, nil
	}
	from = at + find(chunks[at:], r.edits[0].Key)
	if from == len(chunks) {
		return 0, nil
	}
	had := chunks[from]
	if had.Equal(r.old[0]) {
		return from, r.now
	}
	what := had.replaces(r.edits)
	if !what.ok || what.n < len(r.edits) {
		return 0, nil
	}
	for _, e := range r.edits {
		i, _ := had.find(e.Key)
		if j, _ := r.old[0].find(e.Key); had.values[i] != r.old[0].values[j] {
			return 0, nil
		}
	}
	if of, ok := had.measure.load(); ok && r.measured {
		what.measure, what.measured = of.Plus(r.grown), true
	}
	c := &Chunk[V]{}
	c.revalue(had, what, r.edits)
	return from, []*Chunk[V]{c}
}

// joined appends more, which are of one block, to the chunks of a block. It reports false where these end the block.
func joined[V comparable](chunks, more []*Chunk[V]) (out []*Chunk[V], ok bool) {
	if len(more) == 0 {
		return chunks, true
	}
	if n := len(chunks); n > 0 && chunks[n-1].keys.end == endsBlock {
		return nil, false
	}
	return append(chunks, more...), true
}

// more returns how many more chunks there are after the runs than before.
func (b *blockTransition[V]) more() (n int) {
	for i := range b.runs {
		n += len(b.runs[i].now) - len(b.runs[i].old)
	}
	return n
}

// adopt returns next, which was made of had and may be nil, with the blocks and chunks of the second Map where they are
// equal.
func (g *groupTransition[V]) adopt(next, had *group[V]) *group[V] {
	if next == nil || g.now == nil || next == had {
		return next
	}
	for i := range next.len() {
		b := next.at(i)
		theirs := g.now.at(g.now.find(b.last()))
		switch {
		case b == theirs || had != nil && had.blocks != nil && b == had.at(had.find(b.last())):
		case next.blocks != nil && slices.Equal(b.chunks, theirs.chunks):
			next.blocks[i] = theirs
		default:
			b.chunks = g.now.instead(b.chunks)
		}
	}
	return next
}

// instead returns chunks with those of g in the place of equal ones.
func (g *group[V]) instead(chunks []*Chunk[V]) []*Chunk[V] {
	out := chunks
	for i, c := range chunks {
		theirs := g.at(g.find(c.last())).chunks
		at := find(theirs, c.last())
		if at == len(theirs) || theirs[at] == c || !theirs[at].Equal(c) {
			continue
		}
		if &out[0] == &chunks[0] {
			out = slices.Clone(chunks)
		}
		out[i] = theirs[at]
	}
	return out
}

// in returns where chunks, from at on, have the replaced ones, and whether the new ones may stand there instead.
func (r *runTransition[V]) in(chunks []*Chunk[V], at int) (from int, ok bool) {
	switch {
	case len(r.old) > 0:
		from = at + find(chunks[at:], r.old[0].last())
	case len(r.now) > 0:
		from = at + find(chunks[at:], r.now[0].first())
	default:
		return 0, false
	}
	to := from + len(r.old)
	if to > len(chunks) || !slices.Equal(chunks[from:to], r.old) {
		return 0, false
	}
	if from > 0 && !chunks[from-1].natural() {
		return 0, false
	}
	return from, to == len(chunks) || r.endsAlike()
}

// endsAlike reports whether the replaced chunks and the new ones end with the same key, which ends a chunk: at the end
// of a Map they may not, and then what another Map has after them may lie between.
func (r *runTransition[V]) endsAlike() bool {
	if len(r.old) == 0 || len(r.now) == 0 {
		return false
	}
	a, b := r.old[len(r.old)-1], r.now[len(r.now)-1]
	return a.natural() && a.last() == b.last()
}

func count[V comparable](chunks []*Chunk[V]) (n int) {
	for _, c := range chunks {
		n += len(c.values)
	}
	return n
}
