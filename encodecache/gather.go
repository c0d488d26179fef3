package encodecache

// Measured: grpc sends 505 KB in 0.19 ms as one piece, in 0.21 ms as 1,000 pieces and in 0.64 ms as 5,000. So pieces
// below joinBelow are copied together, and a piece that follows such a joint is copied into it up to copyBelow; what is
// bigger is sent from where it lies. Pieces average joinBelow then, for the smallest of them stands beside one that is
// above copyBelow.
const (
	joinBelow = 512
	copyBelow = 2 * joinBelow
	// lieFrom is the size from which a piece that is sent once is left where it lies.
	lieFrom = 128
	// maxJoint is the room that a new joint has, if as much is to come.
	maxJoint = 16 << 10
)

// gather builds a list of pieces out of bytes that it refers to and bytes that it copies.
//
//	add(small) add(small) add(BIG) glue(tag) add(small) add(BIG)
//	└──────joint──────┘   └BIG┘    └───────joint──────┘ └BIG┘
type gather struct {
	// Owned by the goroutine that builds.
	pieces [][]byte
	joint  []byte // copied bytes, not yet a piece
	n      int    // how many bytes pieces and joint have, without referred
	total  int    // what n will be at most
	// referred are the bytes that refer has added.
	referred int
	// runs are the Runs to which pieces belong. Whoever holds the pieces holds them too, so that others find the Runs in
	// their Table meanwhile.
	runs []*Run
}

// add appends b, which nobody may write again.
func (g *gather) add(b []byte) {
	if len(b) < joinBelow || len(b) < copyBelow && len(g.joint) > 0 {
		g.copy(b)
		return
	}
	g.n += len(b)
	g.flush()
	g.pieces = append(g.pieces, b)
}

// addAsItLies works like add for pieces that nobody else will send: a copy of them would serve them alone, so none is
// made.
func (g *gather) addAsItLies(b []byte) {
	if len(b) < lieFrom {
		g.add(b)
		return
	}
	g.n += len(b)
	g.flush()
	g.pieces = append(g.pieces, b)
}

// copy appends the bytes of b to the joint. It never grows one that holds bytes, for that would copy them again.
func (g *gather) copy(b []byte) {
	if len(g.joint)+len(b) > cap(g.joint) {
		g.flush()
		g.joint = make([]byte, 0, max(min(maxJoint, g.total-g.n), len(b)))
	}
	g.joint = append(g.joint, b...)
	g.n += len(b)
}

// refer appends b, which nobody may write again, as a piece.
func (g *gather) refer(b []byte) {
	g.flush()
	g.pieces = append(g.pieces, b)
	g.referred += len(b)
}

// tag appends the key of a length-delimited field and the length of its content.
func (g *gather) tag(field, length int) {
	var b [maxTag]byte
	g.copy(appendVarint(append(b[:0], byte(field)<<3|2), uint64(length)))
}

// str appends a string field, unless it is empty.
func (g *gather) str(field int, s string) {
	if s == "" {
		return
	}
	g.tag(field, len(s))
	g.text(s)
}

// text appends the bytes of s.
func (g *gather) text(s string) {
	if len(g.joint)+len(s) > cap(g.joint) {
		g.copy([]byte(s))
		return
	}
	g.joint = append(g.joint, s...)
	g.n += len(s)
}

// flush makes the joint a piece. What room it has left is the next joint's.
func (g *gather) flush() {
	if len(g.joint) == 0 {
		return
	}
	g.pieces = append(g.pieces, g.joint[:len(g.joint):len(g.joint)])
	g.joint = g.joint[len(g.joint):]
}

// done returns the pieces.
func (g *gather) done() [][]byte {
	g.flush()
	return g.pieces
}

// maxTag is the longest key (field numbers below 16) with its length.
const maxTag = 1 + 10

func appendVarint(b []byte, v uint64) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// sizeField returns the size of a length-delimited field (number below 16) whose content has n bytes.
func sizeField(n int) int {
	size := 2 + n
	for v := n; v >= 0x80; v >>= 7 {
		size++
	}
	return size
}

// sizeStr returns the size of a string field, which is left out when empty.
func sizeStr(s string) int {
	if s == "" {
		return 0
	}
	return sizeField(len(s))
}
