package chunked

// Prefetch reads what an edit near a key reads of each of maps: first the top of all, then what that leads to, and so
// on. The reads of one level do not depend on one another, so that the processor waits for the memory of many Maps at
// once; whoever edits one Map after the other waits for each level of each. It is for Maps that many edits in a row are
// about to be done to, and that have not been read for long.
//
// What it returns means nothing: it depends on all that was read, so that no read is left out by the compiler.
func Prefetch[V comparable](maps []Map[V], key string) (read int) {
	for _, m := range maps {
		read += m.Len()
	}
	first := initialOf(key)
	var buffer [16]*group[V]
	groups := buffer[:0]
	for _, m := range maps {
		all := m.groups()
		for _, g := range all {
			read += int(g.initial)
		}
		if at := findGroup(all, first); at < len(all) {
			groups = append(groups, all[at])
		}
	}
	chunks := make([]*Chunk[V], 0, len(maps))
	for _, g := range groups {
		switch {
		case g.blocks != nil:
			read += g.blocks[0].n + g.blocks[len(g.blocks)-1].n
		case len(g.chunks) == 1:
			chunks = append(chunks, g.chunks[0])
		default:
			read += len(g.chunks[0].values) + len(g.chunks[len(g.chunks)-1].values)
		}
	}
	return read + prefetchChunks(chunks)
}

// prefetchChunks works like Prefetch for chunks that each are all of a group.
func prefetchChunks[V comparable](chunks []*Chunk[V]) (read int) {
	for _, c := range chunks {
		read += len(c.values) + int(c.measure.state.Load())
	}
	var zero V
	for _, c := range chunks {
		read += len(c.keys.list)
		for i := 0; i < len(c.values); i += perLine {
			if c.values[i] == zero {
				read++
			}
		}
	}
	for _, c := range chunks {
		read += len(c.last())
		for i := 0; i < len(c.keys.list); i += perLine / 2 {
			read += len(c.keys.list[i])
		}
	}
	return read
}

// perLine is how many pointers there are in a cache line.
const perLine = 8
