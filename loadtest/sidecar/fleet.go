package sidecar

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pilotd/pilotd/loadtest/wire"
)

// Options say what clients there are.
type Options struct {
	// Clients is how many.
	Clients int
	// Dial makes the connection of one client.
	Dial func(ctx context.Context) (net.Conn, error)
	// Delta chooses the incremental protocol.
	Delta bool
	// Node is the encoded node of client i.
	Node func(i int) ([]byte, error)
	// Dialing is how many clients may be connecting at the same moment; all when 0.
	Dialing int
	// Observe is called with everything that client i receives, by many goroutines. It must not block.
	Observe func(i int, at time.Time, r *Receipt)
	// Raw, if not nil, is called with the bytes that client i receives, before anything else is done with them.
	Raw func(i int, b []byte)
	// Ended is called when the stream of client i ends while the Fleet goes on.
	Ended func(i int, err error)
	// Marks are what changes leave in resources.
	Marks Marks
}

// Fleet is a number of running clients.
type Fleet struct {
	// Immutable after Start.
	options Options
	table   *Table
	members []*member
	cancel  context.CancelFunc
	dialing chan struct{}
	running sync.WaitGroup
	closed  atomic.Bool

	counts [Types + 1]counters
}

// counters are of one type; the last of a Fleet's are of unknown types.
type counters struct{ messages, bytes, resources, useless, uselessBytes, refused atomic.Int64 }

// Count is what all clients have got of one type.
type Count struct {
	Messages     int64 `json:"messages"`
	Bytes        int64 `json:"bytes"`
	Resources    int64 `json:"resources"`
	Useless      int64 `json:"useless"`
	UselessBytes int64 `json:"uselessBytes"`
	Refused      int64 `json:"refused"`
}

// member is one client with its connection.
type member struct {
	// Immutable.
	fleet *Fleet
	index int

	refuse [Types]atomic.Bool // the next response is refused

	mu sync.Mutex
	// Guarded by mu.
	conn  net.Conn
	again bool          // the stream is to be followed by another
	stall chan struct{} // not nil while the member does not read; closed when it goes on

	// Owned by the goroutine that runs the stream.
	client *Client
	stream *wire.Stream
	parser parser
}

// Start connects all clients; it does not wait for answers.
func Start(ctx context.Context, o Options) (*Fleet, error) {
	ctx, cancel := context.WithCancel(ctx)
	f := &Fleet{options: o, table: NewTable(o.Marks), cancel: cancel}
	if o.Dialing > 0 {
		f.dialing = make(chan struct{}, o.Dialing)
	}
	for i := range o.Clients {
		node, err := o.Node(i)
		if err != nil {
			cancel()
			return nil, err
		}
		f.members = append(f.members, &member{fleet: f, index: i, client: NewClient(f.table, o.Delta, node)})
	}
	for _, m := range f.members {
		f.running.Go(func() { m.run(ctx) })
	}
	return f, nil
}

// Counts are what all clients have got so far, by type.
func (f *Fleet) Counts() (out [Types + 1]Count) {
	for i := range f.counts {
		c := &f.counts[i]
		out[i] = Count{c.messages.Load(), c.bytes.Load(), c.resources.Load(), c.useless.Load(), c.uselessBytes.Load(), c.refused.Load()}
	}
	return out
}

// Resources is how many different resources the clients have got.
func (f *Fleet) Resources() int { return f.table.Len() }

// Close ends all clients.
func (f *Fleet) Close() {
	f.closed.Store(true)
	f.cancel()
	for i, m := range f.members {
		f.Stall(i, false)
		m.hangUp(false)
	}
	f.running.Wait()
}

// Reconnect lets all clients hang up and come back with what they have.
func (f *Fleet) Reconnect() {
	for _, m := range f.members {
		m.hangUp(true)
	}
}

// Stall lets client i stop reading, or go on.
func (f *Fleet) Stall(i int, stalled bool) {
	m := f.members[i]
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stall != nil {
		close(m.stall)
		m.stall = nil
	}
	if stalled {
		m.stall = make(chan struct{})
	}
}

// Refuse lets client i refuse the next response of a type, unless it is the first of a stream.
func (f *Fleet) Refuse(i int, t Type) { f.members[i].refuse[t].Store(true) }

// hangUp closes the member's connection; again says that it comes back.
func (m *member) hangUp(again bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn != nil {
		m.again = again
		m.conn.Close()
	}
}

// run is a member's life: one stream after the other while it is told to come back.
func (m *member) run(ctx context.Context) {
	for {
		err := m.session(ctx)
		m.mu.Lock()
		again := m.again
		m.again, m.conn = false, nil
		m.mu.Unlock()
		if again {
			continue
		}
		if f := m.fleet; !f.closed.Load() && f.options.Ended != nil {
			f.options.Ended(m.index, err)
		}
		return
	}
}

func (m *member) session(ctx context.Context) error {
	conn, err := m.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	m.parser = parser{table: m.fleet.table, delta: m.fleet.options.Delta}
	m.stream = wire.New(conn, m.fleet.options.Delta, m.data)
	if err := m.stream.Open(); err != nil {
		return err
	}
	if err := m.send(m.client.Begin()); err != nil {
		return err
	}
	return m.stream.Run()
}

func (m *member) dial(ctx context.Context) (net.Conn, error) {
	if d := m.fleet.dialing; d != nil {
		select {
		case d <- struct{}{}:
			defer func() { <-d }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	conn, err := m.fleet.options.Dial(ctx)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.conn = conn
	if m.fleet.closed.Load() {
		conn.Close()
		return nil, errors.New("the fleet is closed")
	}
	return conn, nil
}

func (m *member) send(requests []Request) error {
	for i := range requests {
		if err := m.stream.Send(requests[i].Append); err != nil {
			return err
		}
	}
	return nil
}

// reading waits while the member is stalled.
func (m *member) reading() {
	m.mu.Lock()
	stall := m.stall
	m.mu.Unlock()
	if stall != nil {
		<-stall
	}
}

// data takes bytes of responses, and answers those that are complete.
func (m *member) data(b []byte) error {
	m.reading()
	if raw := m.fleet.options.Raw; raw != nil {
		raw(m.index, b)
	}
	for len(b) > 0 {
		rest, complete, err := m.parser.feed(b)
		if err != nil {
			return err
		}
		if b = rest; !complete {
			continue
		}
		for t := range m.refuse {
			if m.refuse[t].CompareAndSwap(true, false) {
				m.client.Refuse(Type(t))
			}
		}
		receipt, requests := m.client.Take(&m.parser.response)
		m.parser.reset()
		if err := m.send(requests); err != nil {
			return err
		}
		m.fleet.received(m.index, &receipt)
	}
	return nil
}

// received counts what a client got.
func (f *Fleet) received(i int, r *Receipt) {
	c := &f.counts[Types]
	if r.Known {
		c = &f.counts[r.Type]
	}
	c.messages.Add(1)
	c.bytes.Add(int64(r.Bytes))
	c.resources.Add(int64(r.Resources))
	c.useless.Add(int64(r.Useless))
	c.uselessBytes.Add(int64(r.UselessBytes))
	if r.Refused {
		c.refused.Add(1)
	}
	if f.options.Observe != nil {
		f.options.Observe(i, time.Now(), r)
	}
}
