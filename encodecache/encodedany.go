package encodecache

// Field numbers of google.protobuf.Any.
const (
	anyTypeURL = 1
	anyValue   = 2
)

// EncodedAny is the encoded Any of a resource, in pieces.
type EncodedAny struct {
	// Pieces are sent in this order. They are read only. Small neighbours are joined, so few pieces are smaller than
	// 500 bytes.
	Pieces [][]byte
	// Len is the sum of their lengths.
	Len int
}

// EncodedAny returns the resource's Any. The Any of a big composite is kept until Drop; if two callers make it at the
// same time, one of the two is kept. All others are made anew for each call: that of a leaf is its Fragment with a few
// bytes in front, a small one (every workload has a listener of its own) is a copy that takes a microsecond, and that
// of an Entry in runs copies nothing.
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

// Drop frees the memory of the EncodedAny. Its owner calls Drop when the Entry is superseded and only clients that are
// behind may still need it; it is then made again.
func (e *Entry) Drop() { e.frame.Store(nil) }

// keepFrom is the size from which the EncodedAny of a composite is kept.
const keepFrom = 16 << 10

// kept reports whether to keep the EncodedAny.
func (e *Entry) kept() bool { return e.leaf == nil && !e.inRuns && e.Size() >= keepFrom }

// anyLen returns the length of the resource's Any.
func (e *Entry) anyLen() int {
	n := sizeStr(e.typeURL)
	if e.Size() > 0 {
		n += sizeField(e.size)
	}
	return n
}

// gatherAny appends the Any: its type URL, and the Fragments as its value.
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

// gatherEncoded appends the Any from the kept EncodedAny, or else from the Fragments.
func (e *Entry) gatherEncoded(g *gather) {
	if !e.kept() {
		e.gatherAny(g)
		return
	}
	for _, p := range e.EncodedAny().Pieces {
		g.add(p)
	}
}
