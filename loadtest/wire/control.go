package wire

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// end removes a stream and calls its handler.
func (c *Conn) end(id uint32, why error) error {
	c.mu.Lock()
	s := c.streams[id]
	delete(c.streams, id)
	c.mu.Unlock()
	if s != nil {
		s.handler.Ended(why)
	}
	return c.gone()
}

// gone returns an error if the connection cannot be used any more: the server is going away, and the last stream has
// ended.
func (c *Conn) gone() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.streams) > 0 {
		return nil
	}
	return c.ended
}

// complete handles a frame that is not data.
func (c *Conn) complete(b []byte) error {
	switch h := c.frame; h.kind {
	case http2.FrameSettings:
		if !h.flags.Has(http2.FlagSettingsAck) {
			c.settings(b)
		}
	case http2.FrameWindowUpdate:
		if len(b) == 4 {
			c.opened(h.stream, int(binary.BigEndian.Uint32(b)&^(1<<31)))
		}
	case http2.FramePing:
		if !h.flags.Has(http2.FlagPingAck) {
			c.queue(func(out []byte) []byte {
				return append(appendHeader(out, frameHeader{length: len(b), kind: http2.FramePing,
					flags: http2.FlagPingAck}), b...)
			})
		}
	case http2.FrameHeaders, http2.FrameContinuation:
		return c.headers(b)
	case http2.FrameRSTStream:
		if len(b) == 4 {
			return c.end(h.stream, fmt.Errorf("%w: %s", ErrEnded, http2.ErrCode(binary.BigEndian.Uint32(b))))
		}
	case http2.FrameGoAway:
		c.mu.Lock()
		c.ended = fmt.Errorf("%w: it goes away", ErrEnded)
		c.mu.Unlock()
		return c.gone()
	}
	return nil
}

// opened enlarges a window of the server, and sends what waited for it.
func (c *Conn) opened(stream uint32, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[stream]; s != nil {
		s.window += n
		s.resume()
		return
	}
	if stream == 0 {
		c.window += n
		for _, s := range c.streams {
			s.resume()
		}
	}
}

// settings applies the server's settings.
func (c *Conn) settings(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ; len(b) >= 6; b = b[6:] {
		if http2.SettingID(binary.BigEndian.Uint16(b)) != http2.SettingInitialWindowSize {
			continue
		}
		v := int(binary.BigEndian.Uint32(b[2:]))
		for _, s := range c.streams {
			s.window += v - c.initialW
			s.resume()
		}
		c.initialW = v
	}
	c.queueLocked(func(out []byte) []byte {
		return appendHeader(out, frameHeader{kind: http2.FrameSettings, flags: http2.FlagSettingsAck})
	})
}

// headers processes response headers, which matter only if they report an error or end a stream.
func (c *Conn) headers(b []byte) error {
	if c.frame.kind == http2.FrameHeaders {
		var err error
		if b, err = content(c.frame, b); err != nil {
			return err
		}
		c.block = c.block[:0]
		c.last = c.frame.flags.Has(http2.FlagHeadersEndStream)
	}
	c.block = append(c.block, b...)
	if !c.frame.flags.Has(http2.FlagHeadersEndHeaders) {
		return nil
	}
	var said []string
	dec := hpack.NewDecoder(0, func(f hpack.HeaderField) { said = append(said, f.Name+"="+f.Value) })
	_, err := dec.Write(c.block)
	c.block = nil
	if err != nil {
		return fmt.Errorf("headers: %w", err)
	}
	if c.last {
		return c.end(c.frame.stream, fmt.Errorf("%w: %v", ErrEnded, said))
	}
	return nil
}
