package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"golang.org/x/net/http2"
)

// ErrEnded says that the server ended the stream.
var ErrEnded = errors.New("the server ended the stream")

// Handler is the owner of a stream. The goroutine that runs the connection calls it.
type Handler interface {
	// Data receives bytes of responses as they arrive. They are valid only during the call. An error resets the stream.
	Data(b []byte) error
	// Ended is called with the reason when the stream ends but the connection continues.
	Ended(err error)
}

// Header is what the streams of a connection send in their headers.
type Header struct {
	Authority string
	// Secure says that the connection uses TLS.
	Secure bool
	// Token is the bearer token; empty for none.
	Token string
}

// Conn is one HTTP/2 connection.
type Conn struct {
	// Immutable after NewConn.
	conn    net.Conn
	raw     syscall.RawConn // nil if the connection cannot be read through the kernel directly
	header  Header
	buffers *Buffers

	mu sync.Mutex
	// Guarded by mu.
	out      *bytes.Buffer // frames to be written; nil if there are none
	streams  map[uint32]*Stream
	lastID   uint32 // id of the last stream; the first one is 1
	waiting  bool   // some stream has more to send once out is written
	window   int    // bytes that the server lets the connection send
	initialW int    // window that the server gives to new streams
	ended    error  // why no more stream can be opened

	// Owned by the goroutine that calls Run.
	head    [headerSize]byte
	have    int // bytes of head
	frame   frameHeader
	left    int    // bytes of the frame still to come
	tail    int    // bytes of padding at the frame's end
	padded  bool   // the next byte is the length of the padding
	control []byte // a frame that is not data, so far
	block   []byte // headers that are not complete
	last    bool   // the headers end their stream
	taken   int    // bytes received since the window was last refilled
	more    bool   // the last read filled its buffer
	small   [64]byte
}

// Stream is one stream of the aggregated discovery service.
type Stream struct {
	// Immutable.
	conn    *Conn
	id      uint32
	handler Handler

	// Guarded by the connection's mu.
	pending [][]byte // requests that do not fit into the windows yet
	window  int

	// Owned by the goroutine that runs the connection.
	taken int
}

// NewConn prepares a connection. It sends nothing before Flush or Run.
func NewConn(conn net.Conn, h Header, b *Buffers) *Conn {
	c := &Conn{conn: conn, header: h, buffers: b, streams: map[uint32]*Stream{}, lastID: ^uint32(0),
		window: initialWindow, initialW: initialWindow}
	if sc, ok := conn.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			c.raw = raw
		}
	}
	c.queue(func(b []byte) []byte {
		b = append(b, http2.ClientPreface...)
		b = appendSettings(b, http2.Setting{ID: http2.SettingInitialWindowSize, Val: streamWindow},
			http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0},
			http2.Setting{ID: http2.SettingEnablePush, Val: 0})
		return appendNumber(b, http2.FrameWindowUpdate, 0, maxWindow-initialWindow)
	})
	return c
}

// Open opens a stream of either variant of xDS. Its handler may be called as soon as the opening is flushed.
func (c *Conn) Open(delta bool, h Handler) (*Stream, error) {
	method, scheme := "StreamAggregatedResources", "http"
	if delta {
		method = "DeltaAggregatedResources"
	}
	if c.header.Secure {
		scheme = "https"
	}
	fields := [][2]string{{":method", "POST"}, {":scheme", scheme}, {":authority", c.header.Authority},
		{":path", service + method},
		{"content-type", "application/grpc"}, {"te", "trailers"}}
	if c.header.Token != "" {
		fields = append(fields, [2]string{"authorization", "Bearer " + c.header.Token})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return nil, c.ended
	}
	id := c.lastID + 2
	opening, err := appendOpening(nil, id, fields)
	if err != nil {
		return nil, err
	}
	s := &Stream{conn: c, id: id, handler: h, window: c.initialW}
	c.lastID, c.streams[id] = id, s
	c.queueLocked(func(b []byte) []byte { return append(b, opening...) })
	return s, nil
}

// Send sends parts as one gRPC message as soon as the server's windows allow: with the next Flush, or when Run has
// handled everything that arrived. The caller must not change the parts any more, because those that wait are not
// copied.
func (s *Stream) Send(parts ...[]byte) {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	s.pending = append(append(s.pending, binary.BigEndian.AppendUint32([]byte{0}, uint32(size))), parts...)
	s.resume()
}

// resume queues what fits into the windows now. The caller holds mu.
func (s *Stream) resume() {
	size := 0
	for _, p := range s.pending {
		size += len(p)
	}
	size = min(size, s.window, s.conn.window)
	if room := s.conn.room(); size > room {
		size, s.conn.waiting = room, true
	}
	for size > 0 {
		n := min(size, maxFrame)
		s.window -= n
		s.conn.window -= n
		size -= n
		s.conn.queueLocked(func(b []byte) []byte { return s.frame(b, n) })
	}
	for len(s.pending) > 0 && len(s.pending[0]) == 0 {
		s.pending = s.pending[1:]
	}
	if len(s.pending) == 0 {
		s.pending = nil
	}
}

// room returns how many bytes of requests may be queued before the next Flush; what exceeds it is not copied yet. The
// caller holds mu.
func (c *Conn) room() int {
	if c.out == nil {
		return maxQueued
	}
	return max(0, maxQueued-c.out.Len())
}

// frame appends a frame with the first n pending bytes. The caller holds mu.
func (s *Stream) frame(b []byte, n int) []byte {
	b = appendHeader(b, frameHeader{length: n, kind: http2.FrameData, stream: s.id})
	for n > 0 {
		part := s.pending[0]
		taken := min(n, len(part))
		b = append(b, part[:taken]...)
		n -= taken
		if s.pending[0] = part[taken:]; taken == len(part) {
			s.pending = s.pending[1:]
		}
	}
	return b
}

// Reset ends the stream from this side; afterwards the handler is not called any more. A goroutine other than the one
// that runs the connection may call it only if the handler tolerates calls until then.
func (s *Stream) Reset() {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.conn.streams[s.id] == s {
		delete(s.conn.streams, s.id)
		s.conn.queueLocked(func(b []byte) []byte {
			return appendNumber(b, http2.FrameRSTStream, s.id,
				uint32(http2.ErrCodeCancel))
		})
	}
}

func (c *Conn) queue(build func([]byte) []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queueLocked(build)
}

// queueLocked is queue for callers that hold mu.
func (c *Conn) queueLocked(build func([]byte) []byte) {
	if c.out == nil {
		c.out = c.buffers.take()
	}
	c.out.Write(build(c.out.AvailableBuffer()))
}

// Flush writes what is queued.
func (c *Conn) Flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.out != nil {
		_, err := c.conn.Write(c.out.Bytes())
		c.buffers.give(c.out)
		c.out = nil
		if err != nil {
			return fmt.Errorf("writing: %w", err)
		}
		if c.waiting {
			c.waiting = false
			for _, s := range c.streams {
				s.resume()
			}
		}
	}
	return nil
}
