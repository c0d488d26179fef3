package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	streamID      = 1
	maxFrame      = 16 << 10
	maxWindow     = math.MaxInt32
	initialWindow = 65535 // of HTTP/2
	service       = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
)

// ErrEnded says that the server ended the stream.
var ErrEnded = errors.New("the server ended the stream")

// Stream is one stream of the aggregated discovery service on one connection.
type Stream struct {
	// Immutable after New.
	conn   net.Conn
	framer *http2.Framer
	delta  bool
	data   func([]byte) error

	// Owned by the goroutine that calls Run.
	out      []byte // bytes of requests that are not sent yet
	streamW  int    // what the server lets the stream send
	connW    int    // and the connection
	initialW int    // the window that the server gives to streams
	taken    int    // bytes received since the windows were last refilled
}

// New makes the stream of a connection; data is called by Run with the bytes of responses, as they come.
func New(conn net.Conn, delta bool, data func([]byte) error) *Stream {
	s := &Stream{conn: conn, framer: http2.NewFramer(conn, conn), delta: delta, data: data,
		streamW: initialWindow, connW: initialWindow, initialW: initialWindow}
	s.framer.SetReuseFrames()
	s.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	return s
}

// Open begins connection and stream.
func (s *Stream) Open() error {
	if _, err := io.WriteString(s.conn, http2.ClientPreface); err != nil {
		return err
	}
	if err := s.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: maxWindow}); err != nil {
		return err
	}
	if err := s.framer.WriteWindowUpdate(0, maxWindow-initialWindow); err != nil {
		return err
	}
	method := "StreamAggregatedResources"
	if s.delta {
		method = "DeltaAggregatedResources"
	}
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", "pilotd"}, {":path", service + method},
		{"content-type", "application/grpc"}, {"te", "trailers"}} {
		if err := enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			return err
		}
	}
	return s.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: streamID, BlockFragment: block.Bytes(), EndHeaders: true})
}

// Run reads until the stream ends, and says why.
func (s *Stream) Run() error {
	for {
		f, err := s.framer.ReadFrame()
		if err != nil {
			return err
		}
		if err := s.handle(f); err != nil {
			return err
		}
	}
}

// handle takes one frame of the server.
func (s *Stream) handle(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.DataFrame:
		if err := s.refill(len(f.Data())); err != nil {
			return err
		}
		return s.data(f.Data())
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			s.connW += int(f.Increment)
		} else {
			s.streamW += int(f.Increment)
		}
		return s.flush()
	case *http2.SettingsFrame:
		if f.IsAck() {
			return nil
		}
		if v, ok := f.Value(http2.SettingInitialWindowSize); ok {
			s.streamW += int(v) - s.initialW
			s.initialW = int(v)
		}
		if err := s.framer.WriteSettingsAck(); err != nil {
			return err
		}
		return s.flush()
	case *http2.PingFrame:
		if f.IsAck() {
			return nil
		}
		return s.framer.WritePing(true, f.Data)
	case *http2.MetaHeadersFrame:
		if f.StreamEnded() {
			return fmt.Errorf("%w: %v", ErrEnded, f.Fields)
		}
	case *http2.RSTStreamFrame, *http2.GoAwayFrame:
		return ErrEnded
	}
	return nil
}

// refill opens the windows again after n more bytes.
func (s *Stream) refill(n int) error {
	s.taken += n
	if s.taken <= maxWindow/2 {
		return nil
	}
	for _, id := range []uint32{0, streamID} {
		if err := s.framer.WriteWindowUpdate(id, uint32(s.taken)); err != nil {
			return err
		}
	}
	s.taken = 0
	return nil
}

// Send sends a gRPC message, made by build, as soon as the server's windows allow. Only before Run, or within what Run calls.
func (s *Stream) Send(build func([]byte) []byte) error {
	at := len(s.out)
	s.out = build(append(s.out, 0, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(s.out[at+1:], uint32(len(s.out)-at-5))
	return s.flush()
}

// flush sends as much as the server's windows allow.
func (s *Stream) flush() error {
	sent := 0
	for sent < len(s.out) {
		n := min(len(s.out)-sent, s.streamW, s.connW, maxFrame)
		if n <= 0 {
			break
		}
		if err := s.framer.WriteData(streamID, false, s.out[sent:sent+n]); err != nil {
			return err
		}
		sent += n
		s.streamW -= n
		s.connW -= n
	}
	s.out = s.out[:copy(s.out, s.out[sent:])]
	return nil
}
