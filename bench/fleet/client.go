package fleet

import (
	"net"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotd/pilotd/loadtest/wire"
)

// client is one stream on one connection.
type client struct {
	// Immutable after newClient.
	fleet  *Fleet
	conn   net.Conn
	stream *wire.Stream
	subs   []encodedSubscription
	delta  bool

	// Owned by the client's goroutine.
	made int // subscriptions made so far
	skim skimmer
}

func newClient(f *Fleet, conn net.Conn, subs []encodedSubscription, delta bool) *client {
	c := &client{fleet: f, conn: conn, subs: subs, delta: delta}
	c.stream = wire.New(conn, delta, c.data)
	return c
}

// run is the client's life; node is its encoded node.
func (c *client) run(node []byte) error {
	if err := c.stream.Open(); err != nil {
		return err
	}
	if err := c.subscribe(node); err != nil {
		return err
	}
	return c.stream.Run()
}

// subscribe makes the next subscription, if there is another.
func (c *client) subscribe(node []byte) error {
	if c.made == len(c.subs) {
		return nil
	}
	s := &c.subs[c.made]
	c.made++
	return c.stream.Send(func(b []byte) []byte { return s.first(b, node, c.delta) })
}

// data takes bytes of responses, and answers those that are complete.
func (c *client) data(b []byte) error {
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
			if err := c.stream.Send(func(b []byte) []byte { return sub.ack(b, s.version, s.nonce, c.delta) }); err != nil {
				return err
			}
		}
	}
	size := s.size
	firstOfType := c.made > 0 && c.made < len(c.subs) && string(s.typeURL) == c.subs[c.made-1].url
	s.reset()
	if firstOfType {
		if err := c.subscribe(nil); err != nil {
			return err
		}
	}
	c.fleet.received(size)
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
