package encodecache

// Field numbers of google.protobuf.Any.
const (
	anyTypeURL = 1
	anyValue   = 2
)

// EncodedAny is the encoded Any of a resource as ready pieces.
type EncodedAny struct {
	// Pieces are to be sent in this order; read only. Small neighbours are joined, so that few are below some 500
	// bytes.
	Pieces [][]byte
	// Len is the sum of their lengths.
	Len int
}

// EncodedAny returns the resource's Any, made now if it is not there. That of a big composite is kept until Drop; two
// callers at the same time may both make it, and one is kept. A leaf's is its Fragment with a few bytes before it, and
// a small one's (every workload has a listener of its own) is a copy that costs a microsecond: these are made when
// asked, and so is that of an Entry in runs, which copies nothing.
func (e *Entry) EncodedAny() *EncodedAny {
	if f := e.frame.Load(); f != nil {
		return f
	}
	g := &gather{total: e.room()}
	e.gatherAny(g)
	f := &EncodedAny{Pieces: g.done(), Len: g.n}
	if e.kept() && !e.frame.CompareAndSwap(nil, f) {
		if cur := e.frame.Load(); cur != nil {
			return cur
		}
	}
	return f
}

// Drop gives the EncodedAny's memory back: the Entry is superseded, and only stragglers may still want it. It is made
// again if they do.
func (e *Entry) Drop() { e.frame.Store(nil) }

// keepFrom is the size of a composite whose EncodedAny is kept.
const keepFrom = 16 << 10

// kept reports whether a EncodedAny is worth its memory.
func (e *Entry) kept() bool { return e.leaf == nil && !e.inRuns && e.Size() >= keepFrom }

// anyLen returns the length of the resource's Any.
func (e *Entry) anyLen() int {
	n := sizeStr(e.typeURL)
	if e.Size() > 0 {
		n += sizeField(e.size)
	}
	return n
}

// gatherAny appends the Any: its type, and the Fragments as its value.
func (e *Entry) gatherAny(g *gather) {
	g.str(anyTypeURL, e.typeURL)
	if e.Size() == 0 {
		return
	}
	g.tag(anyValue, e.size)
	switch {
	case e.leaf != nil:
		g.add(e.leaf.bytes)
		return
	case e.inRuns:
		for r := range e.body.Runs {
			g.addRun(r)
		}
		return
	}
	for f := range e.body.Fragments {
		g.add(f.bytes)
	}
}

// gatherEncoded appends the Any out of the kept EncodedAny, or else out of the Fragments.
func (e *Entry) gatherEncoded(g *gather) {
	if !e.kept() {
		e.gatherAny(g)
		return
	}
	for _, p := range e.EncodedAny().Pieces {
		g.add(p)
	}
}
