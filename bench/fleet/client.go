package fleet

import (
	"net"

	"github.com/pilotd/pilotd/loadtest/wire"
)

// client is one stream on one connection.
type client struct {
	// Immutable after newClient.
	fleet *Fleet
	conn  net.Conn
	subs  []encodedSubscription // in the order in which they are sent
	delta bool                  // whether it speaks the incremental protocol

	// Owned by the client's goroutine.
	stream *wire.Stream
	made   int // subscriptions sent so far
	skim   skimmer
	failed error // why the server ended the stream
}

func newClient(f *Fleet, conn net.Conn, subs []encodedSubscription, delta bool) *client {
	return &client{fleet: f, conn: conn, subs: subs, delta: delta}
}

// run runs the client until its end; node is its encoded node.
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

// subscribe sends the next subscription, if there is one.
func (c *client) subscribe(node []byte) {
	if c.made == len(c.subs) {
		return
	}
	s := &c.subs[c.made]
	c.made++
	c.send(wire.Request{TypeURL: s.url, Node: node, Names: s.names})
}

// Ended implements wire.Handler.
func (c *client) Ended(err error) {
	c.failed = err
	c.conn.Close()
}

// Data implements wire.Handler. It answers complete responses.
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
		sub := &c.subs[i]
		if string(s.typeURL) != sub.url {
			continue
		}
		ack := wire.Request{TypeURL: sub.url, Version: string(s.version), Nonce: string(s.nonce)}
		if !c.delta {
			ack.Names = sub.names
		}
		c.send(ack)
	}
	size := s.size
	firstOfType := c.made > 0 && c.made < len(c.subs) && string(s.typeURL) == c.subs[c.made-1].url
	s.reset()
	if firstOfType {
		c.subscribe(nil)
	}
	c.fleet.received(size)
}

// send sends a request in the client's variant of xDS.
func (c *client) send(r wire.Request) {
	r.Delta = c.delta
	c.stream.Send(r.Parts())
}

// encodedSubscription is a Subscription in the form in which requests carry it.
type encodedSubscription struct {
	url   string
	names []byte // see wire.Request
}

func encode(s Subscription) encodedSubscription {
	e := encodedSubscription{url: s.TypeURL}
	for _, n := range s.Names {
		e.names = wire.AppendName(e.names, n)
	}
	return e
}
