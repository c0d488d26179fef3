package fleet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/encoding/protowire"
)

const (
	streamID  = 1
	maxFrame  = 16 << 10
	maxWindow = math.MaxInt32
	service   = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
)

// client is one stream on one connection.
type client struct {
	// Immutable after newClient.
	fleet  *Fleet
	conn   net.Conn
	framer *http2.Framer
	subs   []encodedSubscription
	delta  bool

	// Owned by the client's goroutine.
	made     int    // subscriptions made so far
	out      []byte // bytes of requests that are not sent yet
	streamW  int    // what the server lets the stream send
	connW    int    // and the connection
	initialW int    // the window that the server gives to streams
	taken    int    // bytes received since the windows were last refilled
	skim     skimmer
}

func newClient(f *Fleet, conn net.Conn, subs []encodedSubscription, delta bool) *client {
	const initial = 65535 // of HTTP/2
	c := &client{fleet: f, conn: conn, framer: http2.NewFramer(conn, conn), subs: subs, delta: delta,
		streamW: initial, connW: initial, initialW: initial}
	c.framer.SetReuseFrames()
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	return c
}

// run is the client's life; node is its encoded node.
func (c *client) run(node []byte) error {
	if err := c.open(); err != nil {
		return err
	}
	if err := c.subscribe(node); err != nil {
		return err
	}
	for {
		f, err := c.framer.ReadFrame()
		if err != nil {
			return err
		}
		if err := c.handle(f); err != nil {
			return err
		}
	}
}

// open begins connection and stream.
func (c *client) open() error {
	if _, err := io.WriteString(c.conn, http2.ClientPreface); err != nil {
		return err
	}
	if err := c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: maxWindow}); err != nil {
		return err
	}
	if err := c.framer.WriteWindowUpdate(0, maxWindow-65535); err != nil {
		return err
	}
	method := "StreamAggregatedResources"
	if c.delta {
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
	return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: streamID, BlockFragment: block.Bytes(), EndHeaders: true})
}

// subscribe makes the next subscription, if there is another.
func (c *client) subscribe(node []byte) error {
	if c.made == len(c.subs) {
		return nil
	}
	s := &c.subs[c.made]
	c.made++
	c.request(func(b []byte) []byte { return s.first(b, node, c.delta) })
	return c.flush()
}

// handle takes one frame of the server.
func (c *client) handle(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.DataFrame:
		return c.data(f.Data())
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			c.connW += int(f.Increment)
		} else {
			c.streamW += int(f.Increment)
		}
		return c.flush()
	case *http2.SettingsFrame:
		if f.IsAck() {
			return nil
		}
		if v, ok := f.Value(http2.SettingInitialWindowSize); ok {
			c.streamW += int(v) - c.initialW
			c.initialW = int(v)
		}
		if err := c.framer.WriteSettingsAck(); err != nil {
			return err
		}
		return c.flush()
	case *http2.PingFrame:
		if f.IsAck() {
			return nil
		}
		return c.framer.WritePing(true, f.Data)
	case *http2.MetaHeadersFrame:
		if f.StreamEnded() {
			return fmt.Errorf("%w: %v", errEnded, f.Fields)
		}
	case *http2.RSTStreamFrame, *http2.GoAwayFrame:
		return errEnded
	}
	return nil
}

// data takes bytes of responses, and answers those that are complete.
func (c *client) data(b []byte) error {
	c.taken += len(b)
	if c.taken > maxWindow/2 {
		for _, id := range []uint32{0, streamID} {
			if err := c.framer.WriteWindowUpdate(id, uint32(c.taken)); err != nil {
				return err
			}
		}
		c.taken = 0
	}
	for len(b) > 0 {
		b = c.skim.feed(b)
		if !c.skim.complete() {
			continue
		}
		if err := c.answer(); err != nil {
			return err
		}
	}
	return nil
}

// answer ACKs the response that was skimmed.
func (c *client) answer() error {
	s := &c.skim
	for i := range c.subs {
		if sub := &c.subs[i]; string(s.typeURL) == sub.url {
			c.request(func(b []byte) []byte { return sub.ack(b, s.version, s.nonce, c.delta) })
		}
	}
	size := s.size
	firstOfType := c.made > 0 && c.made < len(c.subs) && string(s.typeURL) == c.subs[c.made-1].url
	s.reset()
	if err := c.flush(); err != nil {
		return err
	}
	if firstOfType {
		if err := c.subscribe(nil); err != nil {
			return err
		}
	}
	c.fleet.received(size)
	return nil
}

// request appends a gRPC message, made by build, to what is to be sent.
func (c *client) request(build func([]byte) []byte) {
	at := len(c.out)
	c.out = build(append(c.out, 0, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(c.out[at+1:], uint32(len(c.out)-at-5))
}

// flush sends as much as the server's windows allow.
func (c *client) flush() error {
	sent := 0
	for sent < len(c.out) {
		n := min(len(c.out)-sent, c.streamW, c.connW, maxFrame)
		if n <= 0 {
			break
		}
		if err := c.framer.WriteData(streamID, false, c.out[sent:sent+n]); err != nil {
			return err
		}
		sent += n
		c.streamW -= n
		c.connW -= n
	}
	c.out = c.out[:copy(c.out, c.out[sent:])]
	return nil
}

// encodedSubscription is a Subscription as requests carry it; both kinds have names in field 3.
type encodedSubscription struct {
	url   string
	names []byte
}

func encode(s Subscription, _ bool) encodedSubscription {
	e := encodedSubscription{url: s.TypeURL}
	for _, n := range s.Names {
		e.names = protowire.AppendString(protowire.AppendTag(e.names, 3, protowire.BytesType), n)
	}
	return e
}

// Numbers of the fields of requests.
const (
	sotwVersion, sotwNode, sotwType, sotwNonce = 1, 2, 4, 5
	deltaNode, deltaType, deltaNonce           = 1, 2, 6
)

func appendField(b []byte, num protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
}

// first is the request that subscribes.
func (s *encodedSubscription) first(b, node []byte, delta bool) []byte {
	if delta {
		b = appendField(b, deltaNode, node)
		b = appendField(b, deltaType, []byte(s.url))
		return append(b, s.names...)
	}
	b = appendField(b, sotwNode, node)
	b = append(b, s.names...)
	return appendField(b, sotwType, []byte(s.url))
}

// ack answers a response.
func (s *encodedSubscription) ack(b, version, nonce []byte, delta bool) []byte {
	if delta {
		b = appendField(b, deltaType, []byte(s.url))
		return appendField(b, deltaNonce, nonce)
	}
	b = appendField(b, sotwVersion, version)
	b = append(b, s.names...)
	b = appendField(b, sotwType, []byte(s.url))
	return appendField(b, sotwNonce, nonce)
}
