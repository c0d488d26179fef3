package sidecar

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pilotd/pilotd/loadtest/wire"
	"github.com/pilotd/pilotd/xdstype"
)

// Options describe the clients of a Fleet.
type Options struct {
	// Clients is the number of clients.
	Clients int
	// PerConnection is the number of clients on one connection; 0 means 1, as proxies have it.
	PerConnection int
	// Targets is the number of servers; 0 means 1. Connections are spread over them, and move to the next one after a
	// failure.
	Targets int
	// Dial connects to a server.
	Dial func(ctx context.Context, target, client int) (net.Conn, wire.Header, error)
	// Spec describes client i.
	Spec func(i int) (Spec, error)
	// Dialing bounds the connections that are made at the same moment; 0 means all.
	Dialing int
	// Observe is called with everything that client i receives, from many goroutines. It must not block.
	Observe func(i int, at time.Time, r *Receipt)
	// Raw, unless nil, is called with the bytes that client i receives, before anything else happens with them.
	Raw func(i int, b []byte)
	// Ended is called when a stream of client i, or an attempt to open one, ends unexpectedly. The client retries by
	// itself.
	Ended func(i int, err error)
	// Marks describes the marks of changes in resources.
	Marks Marks
}

// Fleet runs clients.
type Fleet struct {
	// Immutable after Start.
	options Options
	table   *Table
	buffers *wire.Buffers
	members []*member
	links   []*link
	ctx     context.Context
	cancel  context.CancelFunc
	dialing chan struct{}

	running sync.WaitGroup
	streams atomic.Int64
	counts  [xdstype.NumStandard + 1]counters
}

// counters are the counts of one type; the last of a Fleet's are for unknown types.
type counters struct{ messages, bytes, resources, useless, uselessBytes, refused atomic.Int64 }

// Count is what all clients have received of one type.
type Count struct {
	Messages     int64 `json:"messages"`
	Bytes        int64 `json:"bytes"`
	Resources    int64 `json:"resources"`
	Useless      int64 `json:"useless"`
	UselessBytes int64 `json:"uselessBytes"`
	Refused      int64 `json:"refused"`
}

// Start starts to connect all clients, without waiting for answers.
func Start(ctx context.Context, o Options) (*Fleet, error) {
	o.PerConnection, o.Targets = max(o.PerConnection, 1), max(o.Targets, 1)
	f := &Fleet{options: o, table: NewTable(o.Marks), buffers: wire.NewBuffers()}
	if o.Dialing > 0 {
		f.dialing = make(chan struct{}, o.Dialing)
	}
	for i := range o.Clients {
		if i%o.PerConnection == 0 {
			l := &link{fleet: f, wake: make(chan struct{})}
			l.target.Store(int64(len(f.links)))
			f.links = append(f.links, l)
		}
		s, err := o.Spec(i)
		if err != nil {
			return nil, err
		}
		l := f.links[len(f.links)-1]
		m := &member{link: l, index: i, client: NewClient(f.table, s)}
		l.members = append(l.members, m)
		f.members = append(f.members, m)
	}
	f.ctx, f.cancel = context.WithCancel(ctx)
	for _, l := range f.links {
		f.running.Go(l.run)
	}
	return f, nil
}

// Counts returns what all clients have received so far, by type.
func (f *Fleet) Counts() (out [xdstype.NumStandard + 1]Count) {
	for i := range f.counts {
		c := &f.counts[i]
		out[i] = Count{c.messages.Load(), c.bytes.Load(), c.resources.Load(), c.useless.Load(), c.uselessBytes.Load(),
			c.refused.Load()}
	}
	return out
}

// Resources returns the number of different resources that clients have now.
func (f *Fleet) Resources() int { return f.table.Len() }

// Streams returns the number of open streams.
func (f *Fleet) Streams() int { return int(f.streams.Load()) }

// Destinations returns the services whose endpoints client i asks for now.
func (f *Fleet) Destinations(i int) Destinations {
	m := f.members[i]
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.client.Destinations()
}

// Lacks describes what client i has asked for and does not have.
func (f *Fleet) Lacks(i int) string {
	m := f.members[i]
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.client.Lacks()
}

// Connection returns the number of client i's connection. Clients on the same connection stall, slow down and leave
// together.
func (f *Fleet) Connection(i int) int { return i / f.options.PerConnection }

// Target returns the server that client i is connected to, or tries.
func (f *Fleet) Target(i int) int { return int(f.members[i].link.target.Load()) % f.options.Targets }

// Close ends all clients.
func (f *Fleet) Close() {
	f.cancel()
	for _, l := range f.links {
		l.close()
	}
	f.running.Wait()
}

// Reconnect makes all clients disconnect and reconnect with what they have.
func (f *Fleet) Reconnect() {
	for _, l := range f.links {
		l.hangUp(Orderly, soon)
	}
}

// Stall makes the connection of client i stop reading, or continue.
func (f *Fleet) Stall(i int, stalled bool) { f.members[i].link.setStalled(stalled) }

// Slow makes the connection of client i read rate bytes a second; 0 means without limit.
func (f *Fleet) Slow(i, rate int) { f.members[i].link.setRate(rate) }

// Refuse makes client i refuse the next response of a type, unless it is the first of a stream.
func (f *Fleet) Refuse(i int, t xdstype.Type) {
	m := f.members[i]
	m.mu.Lock()
	defer m.mu.Unlock()
	m.client.Refuse(t)
}

// Leave ends the connection of client i until Return.
func (f *Fleet) Leave(i int, how Parting) { f.members[i].link.hangUp(how, stay) }

// Return makes the connection of client i, which Leave ended, come back with what its clients have.
func (f *Fleet) Return(i int) { f.members[i].link.comeBack() }

// Cut breaks the connection of client i, as a network failure does. It comes back with what its clients have, after
// their back-off.
func (f *Fleet) Cut(i int) { f.members[i].link.hangUp(Abrupt, later) }

// Replace makes client i disappear, and a new client without any resources start in its place.
func (f *Fleet) Replace(i int, s Spec) { f.members[i].replace(s) }

// received counts what a client received.
func (f *Fleet) received(i int, r *Receipt) {
	c := &f.counts[xdstype.NumStandard]
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

// Since returns the difference between c and an earlier Count.
func (c Count) Since(before Count) Count {
	return Count{c.Messages - before.Messages, c.Bytes - before.Bytes, c.Resources - before.Resources,
		c.Useless - before.Useless, c.UselessBytes - before.UselessBytes, c.Refused - before.Refused}
}
