package chunked

import (
	"slices"
	"sort"
)

// group is all items whose keys begin with the same byte. It is never empty. Those of a small one are one block, which
// lies in the group itself.
type group[V comparable] struct {
	block[V] // where blocks is nil; else its numbers alone, which are those of all blocks
	blocks   []*block[V]
	initial  initial
}

// block is a run of chunks of a group. It is never empty. All but the last of a group end with a key that ends a block.
type block[V comparable] struct {
	chunks  []*Chunk[V]
	n       int
	few     [1]*Chunk[V] // where chunks lies if there is one
	measure known        // what the items come to: see total
}

// fill sets the chunks of a block, which is new.
func (b *block[V]) fill(chunks []*Chunk[V], items int) {
	b.n = items
	b.set(chunks)
}

// set sets the chunks of a block, which is new, in the memory of its own if there is one.
func (b *block[V]) set(chunks []*Chunk[V]) {
	if b.chunks = chunks; len(chunks) == 1 {
		b.chunks = b.few[:copy(b.few[:], chunks)]
	}
}

// fillWith sets the chunks of a block to those of old, with another one, of as many items, in the place of one.
func (b *block[V]) fillWith(old *block[V], at int, c *Chunk[V]) {
	if b.chunks = b.few[:]; len(old.chunks) > 1 {
		b.chunks = make([]*Chunk[V], len(old.chunks))
	}
	copy(b.chunks, old.chunks)
	b.chunks[at], b.n = c, old.n
	if len(b.chunks) > 1 {
		b.measure.replaced(&old.measure, &old.chunks[at].measure, &c.measure)
	}
}

// total returns where what the items come to is noted: with the chunk, if there is but one.
func (b *block[V]) total() *known {
	if len(b.chunks) == 1 {
		return &b.chunks[0].measure
	}
	return &b.measure
}

func (b *block[V]) last() string { return b.chunks[len(b.chunks)-1].last() }

// ends reports whether the hash of the last key ends the block.
func (b *block[V]) ends() bool { return b.chunks[len(b.chunks)-1].keys.end == endsBlock }

// len returns the number of blocks.
func (g *group[V]) len() int {
	if g.blocks == nil {
		return 1
	}
	return len(g.blocks)
}

// at returns a block.
func (g *group[V]) at(i int) *block[V] {
	if g.blocks == nil {
		return &g.block
	}
	return g.blocks[i]
}

// list returns the blocks.
func (g *group[V]) list() []*block[V] {
	if g == nil {
		return nil
	}
	if g.blocks == nil {
		return []*block[V]{&g.block}
	}
	return g.blocks
}

// find returns the index of the block that a key falls into: the first whose last key is not before it, or else the
// last.
func (g *group[V]) find(key string) int {
	if g.blocks == nil {
		return 0
	}
	return min(sort.Search(len(g.blocks), func(i int) bool { return g.blocks[i].last() >= key }), len(g.blocks)-1)
}

// same reports whether two groups share every chunk.
func (g *group[V]) same(o *group[V]) bool {
	if g == o {
		return true
	}
	if g.n != o.n || g.len() != o.len() {
		return false
	}
	for i := range g.len() {
		if a, b := g.at(i), o.at(i); a != b && !slices.Equal(a.chunks, b.chunks) {
			return false
		}
	}
	return true
}

// groupOf returns the group of blocks; nil if there are none.
func groupOf[V comparable](blocks []*block[V]) *group[V] {
	if len(blocks) == 0 {
		return nil
	}
	g := &group[V]{initial: initialOf(blocks[0].chunks[0].first())}
	if len(blocks) == 1 {
		g.fill(blocks[0].chunks, blocks[0].n)
		g.total().take(blocks[0].total())
		return g
	}
	g.blocks = blocks
	for _, b := range blocks {
		g.n += b.n
	}
	return g
}

// with returns g with another chunk, of the same keys, in the place of one.
func (g *group[V]) with(block, at int, c *Chunk[V]) *group[V] {
	next := &group[V]{}
	next.fillWith(g, place{block: block, chunk: at}, c)
	return next
}

// fillWith makes g, which is new, old with another chunk, of the same keys, in the place of one.
func (g *group[V]) fillWith(old *group[V], at place, c *Chunk[V]) {
	g.initial = old.initial
	if old.blocks == nil {
		g.block.fillWith(&old.block, at.chunk, c)
		return
	}
	b := newBlockWith(old.blocks[at.block], at.chunk, c)
	g.blocks, g.n = slices.Clone(old.blocks), old.n
	g.blocks[at.block] = b
	g.measure.replaced(&old.measure, old.blocks[at.block].total(), b.total())
}

func newBlockWith[V comparable](old *block[V], at int, c *Chunk[V]) *block[V] {
	b := &block[V]{}
	b.fillWith(old, at, c)
	return b
}

// cutBlocks appends the blocks that chunks make up.
func cutBlocks[V comparable](out []*block[V], chunks []*Chunk[V]) []*block[V] {
	for len(chunks) > 0 {
		n := 1
		for n < len(chunks) && chunks[n-1].keys.end != endsBlock {
			n++
		}
		b := &block[V]{}
		b.fill(chunks[:n:n], count(chunks[:n]))
		out, chunks = append(out, b), chunks[n:]
	}
	return out
}

// apply returns g, which may be nil, with edits of keys that begin with its byte: g itself if nothing changes, and nil
// if nothing is left.
func (g *group[V]) apply(edits []Edit[V]) *group[V] {
	if g == nil {
		chunks, _ := apply[V](nil, edits)
		return groupOf(cutBlocks(nil, chunks))
	}
	var out []*block[V]
	done, changed := 0, false // blocks of g that are in out
	for len(edits) > 0 {
		at := max(done, g.find(edits[0].Key))
		out = append(out, g.list()[done:at]...)
		chunks, upTo, rest, touched := g.rewrite(at, edits)
		if done, edits = upTo, rest; !touched {
			out = append(out, g.list()[at:upTo]...)
			continue
		}
		out, changed = cutBlocks(out, chunks), true
	}
	if !changed {
		return g
	}
	return groupOf(append(out, g.list()[done:]...))
}

// rewrite applies the edits that fall into the block at, and into those after it that it is one with then. It returns
// the chunks, the first block that it did not read, the edits that are left, and whether anything differs.
func (g *group[V]) rewrite(at int, edits []Edit[V]) (out []*Chunk[V], upTo int, rest []Edit[V], changed bool) {
	chunks := g.at(at).chunks
	for upTo = at + 1; ; upTo++ {
		n := len(edits)
		if upTo < g.len() {
			n = within(edits, g.at(upTo-1).last())
		}
		out, changed = apply(chunks, edits[:n])
		if !changed || upTo == g.len() || len(out) == 0 || out[len(out)-1].keys.end == endsBlock {
			return out, upTo, edits[n:], changed
		}
		chunks = slices.Concat(chunks, g.at(upTo).chunks)
	}
}

// within returns how many of edits are of keys up to last.
func within[V comparable](edits []Edit[V], last string) int {
	return sort.Search(len(edits), func(i int) bool { return edits[i].Key > last })
}
