package encodecache

import (
	"iter"
	"slices"
)

// Block is a run of resources in the form in which responses of one variant contain them, encoded once for all
// responses that contain the run. Immutable.
type Block struct {
	pieces [][]byte
	size   int
	runs   []*Run // Runs that the pieces belong to
}

// Len returns the number of encoded bytes.
func (b *Block) Len() int { return b.size }

// NewSotWBlock returns a run of resources of DiscoveryResponses.
func NewSotWBlock(entries iter.Seq[*Entry]) *Block {
	g := &gather{}
	for e := range entries {
		g.total += sizeField(e.room())
	}
	for e := range entries {
		e.gatherSotW(g)
	}
	return newBlock(g)
}

// NewDeltaBlock returns a run of resources of DeltaDiscoveryResponses.
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

// fewPieces is the number of pieces up to which a run is not joined.
const fewPieces = 4

// newBlock joins the pieces of a run. One copy now makes the list of pieces of each response shorter.
func newBlock(g *gather) *Block {
	b := &Block{size: g.n, pieces: g.done(), runs: g.runs}
	if len(b.pieces) > fewPieces && len(b.runs) == 0 {
		b.pieces = joined(b.pieces)
	}
	return b
}

// Runs returns the Runs that the block's bytes belong to.
func (b *Block) Runs() []*Run { return b.runs }

// copyBelow returns the size below which pieces are copied into each response that contains the block. Pieces of runs
// need no copy: they were joined when they were gathered, or are sent without copying.
func (b *Block) copyBelow() int {
	if len(b.runs) > 0 {
		return lieFrom
	}
	return joinBelow
}

// addBlocks appends blocks. Their size does not count in g.total.
func (g *gather) addBlocks(blocks []*Block) {
	pieces := 0
	for _, b := range blocks {
		pieces += len(b.pieces)
		for _, p := range b.pieces {
			if len(p) < b.copyBelow() {
				g.total += len(p)
			}
		}
	}
	g.pieces = slices.Grow(g.pieces, pieces+2)
	for _, b := range blocks {
		for _, p := range b.pieces {
			if len(p) < b.copyBelow() {
				g.copy(p)
			} else {
				g.refer(p)
			}
		}
	}
}

// SotWBlocks returns a DiscoveryResponse with the resources of blocks, in their order.
func (a *Assembler) SotWBlocks(h Header, blocks []*Block) *Response {
	tail := a.tail(false)
	g := &gather{total: h.size() + len(tail)}
	g.str(sotwVersion, h.Version)
	g.addBlocks(blocks)
	g.str(sotwTypeURL, h.TypeURL)
	g.str(sotwNonce, h.Nonce)
	r := newResponse(g, h.Nonce, tail)
	r.blocks = blocks
	return r
}

// DeltaBlocks returns a DeltaDiscoveryResponse with the resources of blocks, in their order, and the names of removed
// resources.
func (a *Assembler) DeltaBlocks(h Header, blocks []*Block, removed []string) *Response {
	tail := a.tail(true)
	g := &gather{total: h.size() + len(tail)}
	for _, name := range removed {
		g.total += maxTag + len(name)
	}
	g.str(deltaSystemVersion, h.Version)
	g.addBlocks(blocks)
	g.str(deltaTypeURL, h.TypeURL)
	g.str(deltaNonce, h.Nonce)
	for _, name := range removed {
		g.tag(deltaRemoved, len(name)) // an empty name counts too
		g.text(name)
	}
	r := newResponse(g, h.Nonce, tail)
	r.blocks = blocks
	return r
}

// tail returns the encoded fields at the end of each response.
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
	e.gatherEncoded(g)
}

// gatherDelta appends the resource as a field of a DeltaDiscoveryResponse.
func (e *Entry) gatherDelta(g *gather) {
	var v [versionLen]byte
	sum := e.Sum()
	sum.encode(v[:])
	n := e.anyLen()
	g.tag(deltaResource, sizeField(versionLen)+sizeField(n)+sizeStr(e.name))
	g.tag(resourceVersion, versionLen)
	g.copy(v[:])
	g.tag(resourceAny, n)
	e.gatherEncoded(g)
	g.str(resourceName, e.name)
}

// deltaRoom returns an upper bound of what gatherDelta copies.
func (e *Entry) deltaRoom() int { return e.room() + len(e.name) + versionLen + 4*maxTag }
