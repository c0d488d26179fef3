package chunked

import (
	"slices"
	"strings"
)

// Apply returns m with edits applied, in any order; of several edits of one key the last counts. Chunks in which
// nothing changes are shared with m; if nothing changes at all, the result is m.
func (m Map[V]) Apply(edits []Edit[V]) Map[V] {
	if len(edits) == 0 {
		return m
	}
	edits = lastPerKey(edits)
	if next, ok := m.replaced(edits); ok {
		return next
	}
	groups := m.groups()
	out := make([]*group[V], 0, len(groups)+1)
	changed := false
	at := 0 // the first group of m that is not in out yet
	for len(edits) > 0 {
		first, n := initialOf(edits[0].Key), 1
		for n < len(edits) && initialOf(edits[n].Key) == first {
			n++
		}
		to := at + findGroup(groups[at:], first)
		out = append(out, groups[at:to]...)
		var old *group[V]
		if at = to; to < len(groups) && groups[to].initial == first {
			old, at = groups[to], to+1
		}
		next := old.apply(edits[:n])
		if next != nil {
			out = append(out, next)
		}
		changed, edits = changed || next != old, edits[n:]
	}
	if !changed {
		return m
	}
	return newMap(append(out, groups[at:]...))
}

// replaced returns m with edits, if they only give other values to keys that one chunk has.
func (m Map[V]) replaced(edits []Edit[V]) (next Map[V], ok bool) {
	at, c := m.find(edits[0].Key)
	if c == nil {
		return m, false
	}
	r := c.replaces(edits)
	if !r.ok || r.n < len(edits) {
		return m, false
	}
	if r.none() {
		return m, true
	}
	return m.revalued(at, r, edits), true
}

// apply works like Apply for the chunks of a block. out is chunks if nothing changes.
func apply[V comparable](chunks []*Chunk[V], edits []Edit[V]) (out []*Chunk[V], changed bool) {
	at := 0 // the first of chunks that is not in out yet; a run begins there
	for len(edits) > 0 {
		c := find(chunks, edits[0].Key)
		if c == len(chunks) && c > 0 && !chunks[c-1].natural() {
			c-- // the last chunk is open at its end
		}
		if c < len(chunks) {
			if next, n, ok := chunks[c].replaced(edits); ok {
				out = append(append(out, chunks[at:c]...), next)
				at, edits = c+1, edits[n:]
				changed = changed || next != chunks[c]
				continue
			}
		}
		for c > at && !chunks[c-1].natural() {
			c-- // to where the run begins
		}
		out = append(out, chunks[at:c]...)
		var segments []segment[V]
		var touched bool
		segments, at, edits, touched = rewrite(chunks, c, edits)
		if !touched {
			out = append(out, chunks[c:at]...)
			continue
		}
		changed = true
		out = cutRuns(out, chunks, segments)
	}
	if !changed {
		return chunks, false
	}
	return append(out, chunks[at:]...), true
}

// replaced returns c with the edits that fall into it, if they only give other values to keys that it has: then it ends
// where it ended.
func (c *Chunk[V]) replaced(edits []Edit[V]) (next *Chunk[V], n int, ok bool) {
	r := c.replaces(edits)
	if !r.ok || r.none() {
		return c, r.n, r.ok
	}
	next = &Chunk[V]{}
	next.revalue(c, r, edits)
	return next, r.n, true
}

// rewrite merges edits into chunks from c on, where a run begins, until what it has ends where a run ended before. It
// returns the segments, the first chunk that it did not read, the edits that are left, and whether anything differs.
func rewrite[V comparable](chunks []*Chunk[V], c int, edits []Edit[V]) (out []segment[V], next int, rest []Edit[V],
	touched bool) {
	for {
		var old *Chunk[V]
		var items list[V]
		at, n := c, len(edits)
		if c < len(chunks) {
			old = chunks[c]
			items = old.items()
			c++
		}
		if c < len(chunks) { // the last chunk takes all edits that are left
			n = within(edits, old.last())
		}
		merged, differs := items, false
		if n > 0 {
			merged, differs = merge(items, edits[:n])
		}
		edits = edits[n:]
		touched = touched || differs
		switch {
		case !differs && old != nil:
			out = append(out, segment[V]{chunk: old, at: at, items: items})
		case merged.len() > 0:
			out = append(out, segment[V]{items: merged})
		}
		if c >= len(chunks) || len(edits) == 0 && !touched || endsRun(out, old, merged) {
			return out, c, edits, touched
		}
	}
}

// endsRun reports whether a run ended where a chunk ended, of which items are left, and does so still.
func endsRun[V comparable](segments []segment[V], old *Chunk[V], items list[V]) bool {
	if !old.natural() {
		return false
	}
	return len(segments) == 0 || items.len() > 0 && endOf(items.last()) != endsNothing
}

// merge returns old with edits.
func merge[V comparable](old list[V], edits []Edit[V]) (out list[V], touched bool) {
	out = newList[V](old.len() + len(edits))
	i := 0
	for _, e := range edits {
		from := i
		for i < old.len() && old.keys[i] < e.Key {
			i++
		}
		out.addAll(old.part(from, i))
		have := i < old.len() && old.keys[i] == e.Key
		switch {
		case e.Delete:
			touched = touched || have
		case have && old.values[i] == e.Value:
			out.add(e.Key, e.Value)
		default:
			touched = true
			out.add(e.Key, e.Value)
		}
		if have {
			i++
		}
	}
	out.addAll(old.part(i, old.len()))
	return out, touched
}

// cutRuns appends the chunks of segments to out. old are the chunks of their block before the edits.
func cutRuns[V comparable](out, old []*Chunk[V], segments []segment[V]) []*Chunk[V] {
	var run []segment[V]
	for _, s := range segments {
		if s.chunk != nil {
			run = append(run, s)
			if s.chunk.natural() {
				out, run = cutRun(out, old, run), run[:0]
			}
			continue
		}
		start := 0
		for i, k := range s.items.keys {
			if endOf(k) != endsNothing {
				run = append(run, segment[V]{items: s.items.part(start, i+1)})
				out, run, start = cutRun(out, old, run), run[:0], i+1
			}
		}
		if start < s.items.len() {
			run = append(run, segment[V]{items: s.items.part(start, s.items.len())})
		}
	}
	if len(run) > 0 {
		out = cutRun(out, old, run)
	}
	return out
}

// absentee is a value that may say that it only stands for one that is not there.
type absentee interface{ Absent() bool }

// deletes reports whether the edit takes its key away: it says so, or its value does.
func (e *Edit[V]) deletes() bool {
	if e.Delete {
		return true
	}
	a, ok := any(e.Value).(absentee)
	return ok && a.Absent()
}

// lastPerKey returns edits sorted by key, the last of each, where those whose value is absent are deletes: whoever
// makes an edit, no Map ever holds such a value.
func lastPerKey[V comparable](edits []Edit[V]) []Edit[V] {
	asIs := true
	for i := range edits {
		if !edits[i].Delete && edits[i].deletes() || i > 0 && edits[i-1].Key >= edits[i].Key {
			asIs = false
			break
		}
	}
	if asIs {
		return edits
	}
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b Edit[V]) int { return strings.Compare(a.Key, b.Key) })
	out := edits[:0]
	for i, e := range edits {
		if i+1 < len(edits) && edits[i+1].Key == e.Key {
			continue
		}
		e.Delete = e.deletes()
		out = append(out, e)
	}
	return out
}
