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
	groups := m.groups()
	out := make([]*group[V], 0, len(groups)+1)
	changed := false
	at := 0 // the first group of m that is not in out yet
	for len(edits) > 0 {
		first, n := initial(edits[0].Key), 1
		for n < len(edits) && initial(edits[n].Key) == first {
			n++
		}
		to := at + findGroup(groups[at:], first)
		out = append(out, groups[at:to]...)
		old := &group[V]{}
		if at = to; to < len(groups) && groups[to].initial() == first {
			old, at = groups[to], to+1
		}
		next, touched := old.apply(edits[:n])
		if next.n > 0 {
			out = append(out, next)
		}
		changed, edits = changed || touched, edits[n:]
	}
	if !changed {
		return m
	}
	return newMap(append(out, groups[at:]...))
}

// apply returns g with edits of keys that begin with its byte; g itself if nothing changes.
func (g *group[V]) apply(edits []Edit[V]) (next *group[V], changed bool) {
	chunks, changed := apply(g.chunks, edits)
	if !changed {
		return g, false
	}
	next = &group[V]{chunks: chunks}
	for _, c := range chunks {
		next.n += len(c.items)
	}
	return next, true
}

// apply works like Apply for keys that begin with one byte, which are all keys of chunks.
func apply[V comparable](chunks []*Chunk[V], edits []Edit[V]) (out []*Chunk[V], changed bool) {
	at := 0 // the first of chunks that is not in out yet; a run begins there
	for len(edits) > 0 {
		c := find(chunks, edits[0].Key)
		if c == len(chunks) && c > 0 && !chunks[c-1].natural {
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
		for c > at && !chunks[c-1].natural {
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
	return append(out, chunks[at:]...), changed
}

// replaced returns c with the edits that fall into it, if they only give other values to keys that it has: then it ends
// where it ended.
func (c *Chunk[V]) replaced(edits []Edit[V]) (next *Chunk[V], n int, ok bool) {
	next = c
	for ; n < len(edits) && edits[n].Key <= c.last(); n++ {
		i, found := c.find(edits[n].Key)
		if !found || edits[n].Delete {
			return nil, 0, false
		}
		if next.items[i].Value == edits[n].Value {
			continue
		}
		if next == c {
			next = &Chunk[V]{items: slices.Clone(c.items), natural: c.natural}
		}
		next.items[i].Value = edits[n].Value
	}
	return next, n, n > 0 && (n == len(edits) || c.natural)
}

// rewrite merges edits into chunks from c on, where a run begins, until what it has ends where a run ended before. It
// returns the segments, the first chunk that it did not read, the edits that are left, and whether anything differs.
func rewrite[V comparable](chunks []*Chunk[V], c int, edits []Edit[V]) (out []segment[V], next int, rest []Edit[V],
	touched bool) {
	for {
		var old *Chunk[V]
		var items []Item[V]
		at, n := c, len(edits)
		if c < len(chunks) {
			old = chunks[c]
			items = old.items
			c++
		}
		if c < len(chunks) { // the last chunk takes all edits that are left
			n, _ = slices.BinarySearchFunc(edits, old.last(), func(e Edit[V], k string) int {
				if e.Key <= k {
					return -1
				}
				return 1
			})
		}
		merged, differs := items, false
		if n > 0 {
			merged, differs = merge(make([]Item[V], 0, len(items)+n), items, edits[:n])
		}
		edits = edits[n:]
		touched = touched || differs
		switch {
		case !differs && old != nil:
			out = append(out, segment[V]{chunk: old, at: at, items: items})
		case len(merged) > 0:
			out = append(out, segment[V]{items: merged})
		}
		if c >= len(chunks) || len(edits) == 0 && !touched || endsRun(out, old, merged) {
			return out, c, edits, touched
		}
	}
}

// endsRun reports whether a run ended where a chunk ended, of which items are left, and does so still.
func endsRun[V comparable](segments []segment[V], old *Chunk[V], items []Item[V]) bool {
	if !old.natural {
		return false
	}
	return len(segments) == 0 || len(items) > 0 && endsChunk(items[len(items)-1].Key)
}

// merge appends old with edits applied to items.
func merge[V comparable](items, old []Item[V], edits []Edit[V]) (out []Item[V], touched bool) {
	i := 0
	for _, e := range edits {
		for i < len(old) && old[i].Key < e.Key {
			items = append(items, old[i])
			i++
		}
		have := i < len(old) && old[i].Key == e.Key
		switch {
		case e.Delete:
			touched = touched || have
		case have && old[i].Value == e.Value:
			items = append(items, old[i])
		default:
			touched = true
			items = append(items, Item[V]{e.Key, e.Value})
		}
		if have {
			i++
		}
	}
	return append(items, old[i:]...), touched
}

// cutRuns appends the chunks of segments to out. old are the chunks of their group before the edits.
func cutRuns[V comparable](out, old []*Chunk[V], segments []segment[V]) []*Chunk[V] {
	var run []segment[V]
	for _, s := range segments {
		if s.chunk != nil {
			run = append(run, s)
			if s.chunk.natural {
				out, run = cutRun(out, old, run), run[:0]
			}
			continue
		}
		start := 0
		for i := range s.items {
			if endsChunk(s.items[i].Key) {
				run = append(run, segment[V]{items: s.items[start : i+1]})
				out, run, start = cutRun(out, old, run), run[:0], i+1
			}
		}
		if start < len(s.items) {
			run = append(run, segment[V]{items: s.items[start:]})
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

// Change is one difference between two Maps.
type Change[V comparable] struct {
	Key          string
	Old, New     V
	InOld, InNew bool
}

// Diff calls f for every key whose presence or value differs between old and m, in order. Groups and chunks that both
// share are skipped by pointer.
func (m Map[V]) Diff(old Map[V], f func(Change[V])) {
	a, b := old.groups(), m.groups()
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].initial() < b[0].initial():
			diffChunks(a[0].chunks, nil, f)
			a = a[1:]
		case len(a) == 0 || b[0].initial() < a[0].initial():
			diffChunks(nil, b[0].chunks, f)
			b = b[1:]
		default:
			if a[0] != b[0] {
				diffChunks(a[0].chunks, b[0].chunks, f)
			}
			a, b = a[1:], b[1:]
		}
	}
}

// diffChunks is Diff for keys that begin with one byte.
func diffChunks[V comparable](old, now []*Chunk[V], f func(Change[V])) {
	i, j := 0, 0
	for i < len(old) || j < len(now) {
		if i < len(old) && j < len(now) && old[i] == now[j] {
			i, j = i+1, j+1
			continue
		}
		var a, b []Item[V]
		for ends := false; !ends; { // read on until both sides end at the same key
			behind := len(b) > 0 && lastKey(a) < lastKey(b)
			switch {
			case i < len(old) && (len(a) == 0 || behind):
				a = append(a, old[i].items...)
				i++
			case j < len(now) && !behind:
				b = append(b, now[j].items...)
				j++
			case i < len(old):
				a = append(a, old[i].items...)
				i++
			default:
				ends = true
			}
			ends = ends || len(a) > 0 && len(b) > 0 && lastKey(a) == lastKey(b)
		}
		diffItems(a, b, f)
	}
}

func lastKey[V comparable](items []Item[V]) string {
	if len(items) == 0 {
		return ""
	}
	return items[len(items)-1].Key
}

func diffItems[V comparable](a, b []Item[V], f func(Change[V])) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Key < b[0].Key:
			f(Change[V]{Key: a[0].Key, Old: a[0].Value, InOld: true})
			a = a[1:]
		case len(a) == 0 || b[0].Key < a[0].Key:
			f(Change[V]{Key: b[0].Key, New: b[0].Value, InNew: true})
			b = b[1:]
		default:
			if a[0].Value != b[0].Value {
				f(Change[V]{Key: a[0].Key, Old: a[0].Value, New: b[0].Value, InOld: true, InNew: true})
			}
			a, b = a[1:], b[1:]
		}
	}
}
