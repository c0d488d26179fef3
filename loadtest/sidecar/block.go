package sidecar

import (
	"fmt"
	"hash/maphash"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotd/pilotd/xdstype"
)

// Resources of more than bigSize bytes are not stored. Endpoints and routes can be as big as a mesh: each blockSize
// bytes of them are hashed, and scanned for marks only if no client has yet received them after the same preceding
// bytes.
const (
	bigSize    = 16 << 10
	blockSize  = 4 << 10
	keptBlocks = 32 << 10
	markSize   = 24 // longer than any mark with its number
)

// big receives one big resource in parts. A resource that cannot be read block by block is collected as a whole.
type big struct {
	// Immutable.
	table *Table
	form  form
	size  int

	at         int    // bytes taken
	whole      []byte // nil if it is read block by block
	start, end int    // position of the Any
	resource   *Resource
	version    []byte
	chain      uint64
	fill       int
	block      [blockSize]byte
	carry      [markSize]byte
	carried    int
	tail       []byte // what follows the Any
}

// write receives the next part.
func (g *big) write(b []byte) {
	if g.at < blockSize {
		n := copy(g.block[g.at:], b)
		g.at += n
		if b = b[n:]; g.at < blockSize {
			return
		}
		g.begin()
	}
	g.at += len(b)
	if g.whole != nil {
		g.whole = append(g.whole, b...)
		return
	}
	g.add(b, g.at-len(b))
}

// begin decides from the first block how to continue.
func (g *big) begin() {
	front := g.block[:]
	if !g.recognise(front) {
		g.whole = append(make([]byte, 0, g.size), front...)
		return
	}
	g.chain = uint64(g.end - g.start)
	first := front[g.start:]
	g.fill = copy(g.block[:], first)
	if g.fill == blockSize {
		g.hash(g.block[:])
		g.fill = 0
	}
}

// recognise finds the type and the name of a resource that begins with front, and where it ends.
func (g *big) recognise(front []byte) bool {
	g.start, g.end = 0, g.size
	if g.form.delta {
		for at := 0; ; {
			num, _, n := protowire.ConsumeTag(front[at:])
			length, m := protowire.ConsumeVarint(front[max(0, at+n):])
			if n < 0 || m < 0 {
				return false
			}
			at += n + m
			if num == resourceAny {
				g.start, g.end = at, at+int(length)
				break
			}
			if length > uint64(len(front)-at) {
				return false
			}
			if num == resourceVersion {
				g.version = slices.Clone(front[at : at+int(length)])
			}
			at += int(length)
		}
	}
	any := front[g.start:]
	url, n := header(any, anyURL)
	of, known := typeOf(url)
	if n < 0 || !known || g.form.deep || of != xdstype.Endpoint && of != xdstype.Route || g.end > g.size {
		return false
	}
	rest := any[n:]
	num, kind, n := protowire.ConsumeTag(rest)
	if num != anyValue || kind != protowire.BytesType {
		return false
	}
	_, m := protowire.ConsumeVarint(rest[n:])
	if m < 0 {
		return false
	}
	name, n := header(rest[n+m:], resourceName)
	g.resource = &Resource{Type: of, Name: string(name)}
	return n >= 0
}

// header returns the string at the beginning of b, if it is in field want, and the number of bytes read; negative if it
// is not.
func header(b []byte, want protowire.Number) ([]byte, int) {
	num, kind, n := protowire.ConsumeTag(b)
	if n < 0 || num != want || kind != protowire.BytesType {
		return nil, -1
	}
	v, m := protowire.ConsumeBytes(b[n:])
	if m < 0 {
		return nil, -1
	}
	return v, n + m
}

// add receives bytes at an offset after the first block.
func (g *big) add(b []byte, at int) {
	if over := at + len(b) - g.end; over > 0 {
		over = min(over, len(b))
		g.tail = append(g.tail, b[len(b)-over:]...)
		b = b[:len(b)-over]
	}
	for len(b) > 0 {
		if g.fill == 0 && len(b) >= blockSize {
			g.hash(b[:blockSize])
			b = b[blockSize:]
			continue
		}
		n := copy(g.block[g.fill:], b)
		g.fill += n
		if b = b[n:]; g.fill == blockSize {
			g.hash(g.block[:])
			g.fill = 0
		}
	}
}

// hash processes a complete block, or the last one.
func (g *big) hash(b []byte) {
	g.chain = mix(g.chain ^ maphash.Bytes(g.table.seed, b))
	last := len(b) < blockSize
	marks, ok := g.table.block(g.chain)
	if !ok {
		joined := append(slices.Clone(g.carry[:g.carried]), b...)
		limit := len(joined)
		if !last {
			limit -= markSize
		}
		marks = g.table.marks.in(g.resource.Type, joined, limit, slices.Clip(g.resource.Marks))
		g.table.keep(g.chain, marks)
	}
	g.resource.Marks = marks
	if len(b) >= markSize {
		g.carried = copy(g.carry[:], b[len(b)-markSize:])
	}
}

// done returns the resource.
func (g *big) done() (*Resource, error) {
	if g.whole != nil {
		return g.table.resource(g.whole, g.form)
	}
	g.hash(g.block[:g.fill])
	err := fields(g.tail, func(num protowire.Number, value []byte, _ uint64) {
		if num == resourceVersion {
			g.version = value
		}
	})
	if err != nil {
		return nil, fmt.Errorf("after a resource: %w", err)
	}
	d := digest{body: g.chain, version: maphash.Bytes(g.table.seed, g.version), size: g.size, form: g.form}
	if r := g.table.known(d); r != nil {
		return r, nil
	}
	g.resource.version = string(g.version)
	return g.table.add(d, g.resource), nil
}

// block returns the marks in all blocks so far, if they are known.
func (t *Table) block(chain uint64) ([]int, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	marks, ok := t.blocks[chain]
	if !ok {
		marks, ok = t.older[chain]
	}
	return marks, ok
}

// keep stores the marks of a block.
func (t *Table) keep(chain uint64, marks []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.blocks) >= keptBlocks {
		t.older, t.blocks = t.blocks, map[uint64][]int{}
	}
	t.blocks[chain] = marks
}
