package encodecache

import (
	"slices"

	"google.golang.org/grpc/mem"
)

// Field numbers of envoy.service.discovery.v3.DiscoveryResponse.
const (
	sotwVersion      = 1
	sotwResource     = 2
	sotwTypeURL      = 4
	sotwNonce        = 5
	sotwControlPlane = 6
)

// Field numbers of envoy.service.discovery.v3.DeltaDiscoveryResponse and of its Resource.
const (
	deltaSystemVersion = 1
	deltaResource      = 2
	deltaTypeURL       = 4
	deltaNonce         = 5
	deltaRemoved       = 6
	deltaControlPlane  = 7

	resourceVersion = 1
	resourceAny     = 2
	resourceName    = 3
)

// trackable is a capacity above which grpc considers a buffer to be from a pool, and tells that pool when the buffer is
// written. See Tracked.
const trackable = 1<<10 + 128

// Assembler makes responses, with what all responses of a process have in common. Immutable. A nil Assembler makes
// responses that do not name a control plane.
type Assembler struct {
	sotwTail, deltaTail []byte
}

// NewAssembler returns an Assembler that writes identifier as control_plane.identifier; istioctl expects JSON there.
func NewAssembler(identifier string) *Assembler {
	if identifier == "" {
		return &Assembler{}
	}
	tail := func(field int) []byte {
		g := &gather{total: 2*maxTag + len(identifier)}
		g.tag(field, sizeStr(identifier))
		g.str(1, identifier)
		return slices.Concat(g.done()...)
	}
	return &Assembler{sotwTail: tail(sotwControlPlane), deltaTail: tail(deltaControlPlane)}
}

// Response is one encoded DiscoveryResponse or DeltaDiscoveryResponse, for any number of streams at once. Immutable.
type Response struct {
	nonce  string
	pieces mem.BufferSlice
	last   []byte // the bytes of the last piece, with spare capacity
	size   int
	// What some of the pieces belong to, so that it stays in its Table while this response is being sent
	blocks []*Block
	runs   []*Run // likewise
}

// Header has the fields of a response other than resources. Version is version_info in State-of-the-World and
// system_version_info in Delta.
type Header struct{ TypeURL, Version, Nonce string }

// size returns an upper bound of the encoded size of the header's fields.
func (h Header) size() int { return len(h.TypeURL) + len(h.Version) + len(h.Nonce) + 3*maxTag }

// AssembleSotW returns a DiscoveryResponse with entries, in their order.
func AssembleSotW(h Header, entries []*Entry) *Response { return (*Assembler)(nil).SotW(h, entries) }

// AssembleDelta returns a DeltaDiscoveryResponse with entries, in their order, and the names of removed resources.
func AssembleDelta(h Header, entries []*Entry, removed []string) *Response {
	return (*Assembler)(nil).Delta(h, entries, removed)
}

// SotW works like AssembleSotW, with the control plane's name.
func (a *Assembler) SotW(h Header, entries []*Entry) *Response {
	tail := a.tail(false)
	g := &gather{total: h.size() + len(tail)}
	for _, e := range entries {
		g.total += sizeField(e.room())
	}
	g.str(sotwVersion, h.Version)
	for _, e := range entries {
		e.gatherSotW(g)
	}
	g.str(sotwTypeURL, h.TypeURL)
	g.str(sotwNonce, h.Nonce)
	return newResponse(g, h.Nonce, tail)
}

// Delta works like AssembleDelta, with the control plane's name.
func (a *Assembler) Delta(h Header, entries []*Entry, removed []string) *Response {
	tail := a.tail(true)
	g := &gather{total: h.size() + len(tail)}
	for _, e := range entries {
		g.total += e.deltaRoom()
	}
	for _, name := range removed {
		g.total += maxTag + len(name)
	}
	g.str(deltaSystemVersion, h.Version)
	for _, e := range entries {
		e.gatherDelta(g)
	}
	g.str(deltaTypeURL, h.TypeURL)
	g.str(deltaNonce, h.Nonce)
	for _, name := range removed {
		g.tag(deltaRemoved, len(name)) // an empty name counts too
		g.text(name)
	}
	return newResponse(g, h.Nonce, tail)
}

// newResponse completes a message with tail. It appends tail to the last joint, in a buffer that is large enough for
// Tracked.
func newResponse(g *gather, nonce string, tail []byte) *Response {
	last := g.joint
	g.joint = nil
	if cap(last) < trackable || cap(last)-len(last) < len(tail) {
		last = append(make([]byte, 0, max(trackable, len(last)+len(tail))), last...)
	}
	last = append(last, tail...)
	r := &Response{nonce: nonce, last: last, size: g.n + g.referred + len(tail), runs: g.runs,
		pieces: make(mem.BufferSlice, 0, len(g.pieces)+1)}
	for _, p := range g.pieces {
		r.pieces = append(r.pieces, mem.SliceBuffer(p))
	}
	r.pieces = append(r.pieces, mem.SliceBuffer(last))
	return r
}

// manyPieces is the number of pieces that is fine in a response for one stream, and too many for several.
const manyPieces = 64

// Joined returns r in fewer pieces, for sending it to several streams: one copy now spares each stream a long list of
// pieces. It returns r itself if there is little to join.
func (r *Response) Joined() *Response {
	n := len(r.pieces) - 1
	if n < manyPieces {
		return r
	}
	out := *r
	out.pieces = joinPieces(r.pieces[:n])
	if len(out.pieces) > n/2 {
		return r
	}
	out.pieces = append(out.pieces, r.pieces[n])
	return &out
}

// joinPieces joins neighbouring pieces below maxJoint.
func joinPieces(pieces mem.BufferSlice) (out mem.BufferSlice) {
	for len(pieces) > 0 {
		n := 0
		for n < len(pieces) && pieces[n].Len() < maxJoint {
			n++
		}
		if n > 1 {
			out, pieces = append(out, mem.SliceBuffer(pieces[:n].Materialize())), pieces[n:]
			continue
		}
		out, pieces = append(out, pieces[0]), pieces[1:]
	}
	return out
}

// Nonce returns the nonce that the response carries.
func (r *Response) Nonce() string { return r.nonce }

// Len returns the length of the encoded message.
func (r *Response) Len() int { return r.size }

// Pieces returns the number of buffers.
func (r *Response) Pieces() int { return len(r.pieces) }

// Buffers returns the bytes of the message. They are shared and must never be written. Freeing them does nothing.
func (r *Response) Buffers() mem.BufferSlice { return r.pieces }

// Tracked works like Buffers, for a sender that needs to know when its send is over: grpc calls sent.Put once, when it
// has written or discarded the last bytes. Put does not own the buffer that it receives.
func (r *Response) Tracked(sent mem.BufferPool) mem.BufferSlice {
	n := len(r.pieces) - 1
	out := make(mem.BufferSlice, n+1)
	copy(out, r.pieces[:n])
	out[n] = mem.NewBuffer(&r.last, sent)
	return out
}
