package fleet

import (
	"net"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotd/pilotd/loadtest/wire"
)

// client is one stream on one connection.
type client struct {
	// Immutable after newClient.
	fleet *Fleet
	conn  net.Conn
	subs  []encodedSubscription
	delta bool

	// Owned by the client's goroutine.
	stream *wire.Stream
	made   int // subscriptions made so far
	skim   skimmer
	failed error // why the server ended the stream
}

func newClient(f *Fleet, conn net.Conn, subs []encodedSubscription, delta bool) *client {
	return &client{fleet: f, conn: conn, subs: subs, delta: delta}
}

// run returns the client's life; node is its encoded node.
func (c *client) run(node []byte) (err error) {
	streams := wire.NewConn(c.conn, wire.Header{Authority: "bench"}, c.fleet.buffers)
	if c.stream, err = streams.Open(c.delta, c); err != nil {
		return err
	}
	c.subscribe(node)
	err = streams.Run()
	if c.failed != nil {
		return c.failed
	}
	return err
}

// subscribe makes the next subscription, if there is another.
func (c *client) subscribe(node []byte) {
	if c.made == len(c.subs) {
		return
	}
	s := &c.subs[c.made]
	c.made++
	c.stream.Send(s.first(node, c.delta)...)
}

// Ended implements wire.Handler.
func (c *client) Ended(err error) {
	c.failed = err
	c.conn.Close()
}

// Data implements wire.Handler: it answers responses that are complete.
func (c *client) Data(b []byte) error {
	for len(b) > 0 {
		b = c.skim.feed(b)
		if c.skim.complete() {
			c.answer()
		}
	}
	return nil
}

// answer ACKs the response that was skimmed.
func (c *client) answer() {
	s := &c.skim
	for i := range c.subs {
		if sub := &c.subs[i]; string(s.typeURL) == sub.url {
			c.stream.Send(sub.ack(s.version, s.nonce, c.delta)...)
		}
	}
	size := s.size
	firstOfType := c.made > 0 && c.made < len(c.subs) && string(s.typeURL) == c.subs[c.made-1].url
	s.reset()
	if firstOfType {
		c.subscribe(nil)
	}
	c.fleet.received(size)
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

// first returns the request that subscribes, in parts: the names are the same for all clients.
func (s *encodedSubscription) first(node []byte, delta bool) [][]byte {
	if delta {
		return [][]byte{appendField(appendField(nil, deltaNode, node), deltaType, []byte(s.url)), s.names}
	}
	return [][]byte{appendField(nil, sotwNode, node), s.names, appendField(nil, sotwType, []byte(s.url))}
}

// ack answers a response, in parts.
func (s *encodedSubscription) ack(version, nonce []byte, delta bool) [][]byte {
	if delta {
		return [][]byte{appendField(appendField(nil, deltaType, []byte(s.url)), deltaNonce, nonce)}
	}
	return [][]byte{appendField(nil, sotwVersion, version), s.names,
		appendField(appendField(nil, sotwType, []byte(s.url)), sotwNonce, nonce)}
}
