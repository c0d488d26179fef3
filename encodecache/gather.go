package encodecache

// Measured: grpc sends 505 KB in 0.19 ms as one piece, in 0.21 ms as 1,000 pieces and in 0.64 ms as 5,000. So pieces
// below joinBelow are copied together into a joint, and a piece after a joint is copied into it up to copyBelow; bigger
// pieces are sent without copying. This way pieces have joinBelow bytes on average, because the smallest are next to
// one above copyBelow.
const (
	joinBelow = 512
	copyBelow = 2 * joinBelow
	// lieFrom is the size from which a piece that is sent only once is not copied.
	lieFrom = 128
	// maxJoint is the capacity of a new joint, if that many bytes are still to come.
	maxJoint = 16 << 10
)

// gather builds a list of pieces, from bytes that it refers to and bytes that it copies.
//
//	add(small) add(small) add(BIG) glue(tag) add(small) add(BIG)
//	└──────joint──────┘   └BIG┘    └───────joint──────┘ └BIG┘
type gather struct {
	// Owned by the goroutine that builds.
	pieces [][]byte
	joint  []byte // copied bytes that are not a piece yet
	n      int    // bytes of pieces and joint, without referred
	total  int    // upper bound of n
	// referred counts the bytes that refer has appended.
	referred int
	// runs are the Runs that pieces belong to. Whoever holds the pieces holds the Runs too, so that they stay in their
	// Table meanwhile.
	runs []*Run
}

// add appends b, which must never be written again.
func (g *gather) add(b []byte) {
	if len(b) < joinBelow || len(b) < copyBelow && len(g.joint) > 0 {
		g.copy(b)
		return
	}
	g.n += len(b)
	g.flush()
	g.pieces = append(g.pieces, b)
}

// addAsItLies works like add for bytes that only one response contains, for which a copy would not pay.
func (g *gather) addAsItLies(b []byte) {
	if len(b) < lieFrom {
		g.add(b)
		return
	}
	g.n += len(b)
	g.flush()
	g.pieces = append(g.pieces, b)
}

// copy appends a copy of b to the joint. It never makes a joint that holds bytes larger, because that would copy them
// again.
func (g *gather) copy(b []byte) {
	if len(g.joint)+len(b) > cap(g.joint) {
		g.flush()
		g.joint = make([]byte, 0, max(min(maxJoint, g.total-g.n), len(b)))
	}
	g.joint = append(g.joint, b...)
	g.n += len(b)
}

// refer appends b, which must never be written again, as a piece.
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

// flush makes the joint a piece. The next joint uses the rest of its capacity.
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

// sizeStr returns the size of a string field; an empty string is not encoded.
func sizeStr(s string) int {
	if s == "" {
		return 0
	}
	return sizeField(len(s))
}
