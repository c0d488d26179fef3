package encodecache

import (
	"iter"
	"slices"
)

// Block is a run of resources as responses of one kind carry them, encoded once for all responses that hold the run. Immutable.
type Block struct {
	pieces [][]byte
	size   int
}

// NewSotWBlock is a run of resources of DiscoveryResponses.
func NewSotWBlock(entries iter.Seq[*Entry]) *Block {
	g := &gather{}
	for e := range entries {
		g.total += sizeField(e.anyLen())
	}
	for e := range entries {
		e.gatherSotW(g)
	}
	return newBlock(g)
}

// NewDeltaBlock is a run of resources of DeltaDiscoveryResponses.
func NewDeltaBlock(entries iter.Seq[*Entry]) *Block {
	g := &gather{}
	for e := range entries {
		g.total += e.deltaRoom()
	}
	for e := range entries {
		e.gatherDelta(g)
	}
	return newBlock(g)
}

// newBlock joins the pieces of a run: a copy now is a list entry less in each response.
func newBlock(g *gather) *Block {
	b := &Block{size: g.n}
	pieces := g.done()
	for len(pieces) > 0 {
		n := 0
		for n < len(pieces) && len(pieces[n]) < maxJoint {
			n++
		}
		if n > 0 {
			b.pieces = append(b.pieces, slices.Concat(pieces[:n]...))
		} else {
			b.pieces, n = append(b.pieces, pieces[0]), 1
		}
		pieces = pieces[n:]
	}
	return b
}

// gatherBlocks appends blocks.
func gatherBlocks(g *gather, blocks []*Block) {
	for _, b := range blocks {
		for _, p := range b.pieces {
			g.add(p)
		}
	}
}

func sizeOf(blocks []*Block) (n int) {
	for _, b := range blocks {
		n += b.size
	}
	return n
}

// SotWBlocks is a DiscoveryResponse with the resources of blocks, in their order.
func (a *Assembler) SotWBlocks(typeURL, version, nonce string, blocks []*Block) *Response {
	tail := a.tail(false)
	g := &gather{total: sizeOf(blocks) + len(version) + len(typeURL) + len(nonce) + 3*maxTag + len(tail)}
	g.str(sotwVersion, version)
	gatherBlocks(g, blocks)
	g.str(sotwTypeURL, typeURL)
	g.str(sotwNonce, nonce)
	r := newResponse(g, nonce, tail)
	r.blocks = blocks
	return r
}

// DeltaBlocks is a DeltaDiscoveryResponse with the resources of blocks, in their order, and the names of what is gone.
func (a *Assembler) DeltaBlocks(typeURL, nonce string, blocks []*Block, removed []string) *Response {
	tail := a.tail(true)
	g := &gather{total: sizeOf(blocks) + len(typeURL) + len(nonce) + 3*maxTag + len(tail)}
	for _, name := range removed {
		g.total += maxTag + len(name)
	}
	gatherBlocks(g, blocks)
	g.str(deltaTypeURL, typeURL)
	g.str(deltaNonce, nonce)
	for _, name := range removed {
		g.tag(deltaRemoved, len(name)) // an empty name is a name
		g.text(name)
	}
	r := newResponse(g, nonce, tail)
	r.blocks = blocks
	return r
}

// tail is what ends each response.
func (a *Assembler) tail(delta bool) []byte {
	switch {
	case a == nil:
		return nil
	case delta:
		return a.deltaTail
	}
	return a.sotwTail
}

// gatherSotW appends the resource as a field of a DiscoveryResponse.
func (e *Entry) gatherSotW(g *gather) {
	g.tag(sotwResource, e.anyLen())
	e.gatherFrame(g)
}

// gatherDelta appends the resource as a field of a DeltaDiscoveryResponse.
func (e *Entry) gatherDelta(g *gather) {
	var v [versionLen]byte
	e.version.encode(v[:])
	n := e.anyLen()
	g.tag(deltaResource, sizeField(versionLen)+sizeField(n)+sizeStr(e.name))
	g.tag(resourceVersion, versionLen)
	g.copy(v[:])
	g.tag(resourceAny, n)
	e.gatherFrame(g)
	g.str(resourceName, e.name)
}

// deltaRoom is at least what gatherDelta appends.
func (e *Entry) deltaRoom() int { return e.anyLen() + len(e.name) + versionLen + 4*maxTag }
