package chunked

// Change is one difference between two Maps.
type Change[V comparable] struct {
	Key          string
	Old, New     V
	InOld, InNew bool
}

// Diff calls f for every key whose presence or value differs between old and m, in order. Groups, blocks and chunks
// that both share are skipped by pointer.
func (m Map[V]) Diff(old Map[V], f func(Change[V])) {
	a, b := old.groups(), m.groups()
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].initial < b[0].initial:
			diffBlocks(a[0].list(), nil, f)
			a = a[1:]
		case len(a) == 0 || b[0].initial < a[0].initial:
			diffBlocks(nil, b[0].list(), f)
			b = b[1:]
		default:
			if a[0] != b[0] {
				diffBlocks(a[0].list(), b[0].list(), f)
			}
			a, b = a[1:], b[1:]
		}
	}
}

// diffBlocks works like Diff for keys that begin with one byte.
func diffBlocks[V comparable](old, now []*block[V], f func(Change[V])) {
	for len(old)+len(now) > 0 {
		if len(old) > 0 && len(now) > 0 && old[0] == now[0] {
			old, now = old[1:], now[1:]
			continue
		}
		i, j := pair(old, now, (*block[V]).last)
		diffChunks(chunksOfAll(old[:i]), chunksOfAll(now[:j]), f)
		old, now = old[i:], now[j:]
	}
}

// chunksOfAll returns the chunks of blocks.
func chunksOfAll[V comparable](blocks []*block[V]) (out []*Chunk[V]) {
	if len(blocks) == 1 {
		return blocks[0].chunks
	}
	for _, b := range blocks {
		out = append(out, b.chunks...)
	}
	return out
}

// pair returns the first places at which two lists have come to the same last key, or their ends.
func pair[T any](old, now []T, last func(T) string) (i, j int) {
	if len(old) == 0 || len(now) == 0 {
		return len(old), len(now)
	}
	for i, j = 1, 1; ; {
		a, b := last(old[i-1]), last(now[j-1])
		switch {
		case a == b || i == len(old) && j == len(now):
			return i, j
		case i < len(old) && (j == len(now) || a < b):
			i++
		default:
			j++
		}
	}
}

// diffChunks works like Diff for the chunks of blocks.
func diffChunks[V comparable](old, now []*Chunk[V], f func(Change[V])) {
	for len(old)+len(now) > 0 {
		if len(old) > 0 && len(now) > 0 && old[0] == now[0] {
			old, now = old[1:], now[1:]
			continue
		}
		i, j := pair(old, now, (*Chunk[V]).last)
		diffItems(itemsOfAll(old[:i]), itemsOfAll(now[:j]), f)
		old, now = old[i:], now[j:]
	}
}

// itemsOfAll returns the items of chunks.
func itemsOfAll[V comparable](chunks []*Chunk[V]) (out list[V]) {
	if len(chunks) == 1 {
		return chunks[0].items()
	}
	for _, c := range chunks {
		out.addAll(c.items())
	}
	return out
}

func diffItems[V comparable](a, b list[V], f func(Change[V])) {
	for i, j := 0, 0; i < a.len() || j < b.len(); {
		switch {
		case j == b.len() || i < a.len() && a.keys[i] < b.keys[j]:
			f(Change[V]{Key: a.keys[i], Old: a.values[i], InOld: true})
			i++
		case i == a.len() || b.keys[j] < a.keys[i]:
			f(Change[V]{Key: b.keys[j], New: b.values[j], InNew: true})
			j++
		default:
			if a.values[i] != b.values[j] {
				f(Change[V]{Key: a.keys[i], Old: a.values[i], New: b.values[j], InOld: true, InNew: true})
			}
			i, j = i+1, j+1
		}
	}
}
