package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"

	"golang.org/x/net/http2"
)

// readSize is the size of one read.
const readSize = 64 << 10

// Buffers are shared by connections, so that only those that are reading or writing hold one.
type Buffers struct{ read, write sync.Pool }

// NewBuffers returns a pool without buffers.
func NewBuffers() *Buffers {
	return &Buffers{read: sync.Pool{New: func() any { return new([readSize]byte) }},
		write: sync.Pool{New: func() any { return new(bytes.Buffer) }}}
}

func (p *Buffers) take() *bytes.Buffer { return p.write.Get().(*bytes.Buffer) }

func (p *Buffers) give(b *bytes.Buffer) {
	if b.Cap() <= 4*readSize {
		b.Reset()
		p.write.Put(b)
	}
}

// Run reads until the connection ends, and returns the reason. It does not call Handler.Ended.
func (c *Conn) Run() error {
	err := c.Flush()
	for err == nil {
		if err = c.read(); err == nil {
			err = c.Flush()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams, c.ended = nil, err
	return err
}

// read reads once and handles what arrived. It holds no buffer while there is nothing to read.
func (c *Conn) read() error {
	if c.raw == nil {
		return c.readPlain()
	}
	var buf *[readSize]byte
	var n int
	var failure error
	err := c.raw.Read(func(fd uintptr) bool {
		buf = c.buffers.read.Get().(*[readSize]byte)
		for {
			n, failure = syscall.Read(int(fd), buf[:])
			if !errors.Is(failure, syscall.EINTR) {
				break
			}
		}
		if errors.Is(failure, syscall.EAGAIN) {
			c.buffers.read.Put(buf)
			buf = nil
			return false
		}
		return true
	})
	if buf == nil {
		return err
	}
	defer c.buffers.read.Put(buf)
	switch {
	case failure != nil:
		return fmt.Errorf("reading: %w", failure)
	case n <= 0:
		return io.EOF
	}
	return c.consume(buf[:n])
}

// readPlain reads where only the connection itself can be read, as with TLS: it waits with a buffer of a few bytes, and
// uses a larger one if there is more.
func (c *Conn) readPlain() error {
	b := c.small[:]
	if c.more {
		buf := c.buffers.read.Get().(*[readSize]byte)
		defer c.buffers.read.Put(buf)
		b = buf[:]
	}
	n, err := c.conn.Read(b)
	c.more = n == len(b)
	if failure := c.consume(b[:n]); failure != nil {
		return failure
	}
	return err
}

// consume handles bytes of frames.
func (c *Conn) consume(b []byte) error {
	for len(b) > 0 {
		if c.left == 0 {
			n := copy(c.head[c.have:], b)
			c.have += n
			if b = b[n:]; c.have < headerSize {
				return nil
			}
			c.begin()
		}
		n := min(c.left, len(b))
		c.left -= n
		if err := c.payload(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// begin starts a frame.
func (c *Conn) begin() {
	c.have = 0
	c.frame = parseHeader(c.head[:])
	c.left, c.tail = c.frame.length, 0
	c.padded = c.frame.kind == http2.FrameData && c.frame.flags.Has(http2.FlagDataPadded)
}

// payload handles bytes of the present frame. Data is passed on at once, other frames when they are complete.
func (c *Conn) payload(b []byte) error {
	if c.frame.kind == http2.FrameData {
		return c.data(b)
	}
	if len(c.control)+c.left > maxControl {
		return fmt.Errorf("a %s frame of %d bytes", c.frame.kind, c.frame.length)
	}
	if c.left > 0 {
		c.control = append(c.control, b...)
		return nil
	}
	if len(c.control) > 0 {
		b = append(c.control, b...)
	}
	c.control = nil
	return c.complete(b)
}

// data handles bytes of a data frame.
func (c *Conn) data(b []byte) error {
	c.mu.Lock()
	s := c.streams[c.frame.stream]
	c.mu.Unlock()
	if c.taken += len(b); c.taken > maxWindow/2 {
		c.refill(&c.taken, 0)
	}
	if s != nil {
		if s.taken += len(b); s.taken > streamWindow/4 {
			c.refill(&s.taken, s.id)
		}
	}
	if c.padded && len(b) > 0 {
		c.padded, c.tail = false, int(b[0])
		b = b[1:]
	}
	if over := c.tail - c.left; over > 0 {
		b = b[:max(0, len(b)-over)]
	}
	if s == nil {
		return nil // the stream was reset
	}
	if len(b) > 0 {
		if err := s.handler.Data(b); err != nil {
			s.Reset()
			s.handler.Ended(err)
			return c.gone()
		}
	}
	if c.left == 0 && c.frame.flags.Has(http2.FlagDataEndStream) {
		return c.end(s.id, ErrEnded)
	}
	return nil
}

// refill enlarges a window by the bytes that were taken.
func (c *Conn) refill(taken *int, stream uint32) {
	n := uint32(*taken)
	c.queue(func(b []byte) []byte { return appendNumber(b, http2.FrameWindowUpdate, stream, n) })
	*taken = 0
}
