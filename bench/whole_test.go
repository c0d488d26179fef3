package bench

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/pilotd/pilotd/bench/fleet"
	"github.com/pilotd/pilotd/bench/mesh"
	"github.com/pilotd/pilotd/bench/nullserver"
	"github.com/pilotd/pilotd/cmd/pilotd/discovery"
)

// system is a server with what a benchmark needs to know of it.
type system interface {
	serve(fleet.Transport) (stop func())
	// change begins the n-th change, and returns when that is out of the caller's hands.
	change(n int)
	// Await returns when the server has read n requests since it started.
	Await(ctx context.Context, n int) error
}

// whole is pilotd with a mesh, but for its sources and ports.
type whole struct {
	// Immutable after newWhole.
	server *discovery.Server
	mesh   *mesh.Mesh
	stop   func()

	counter
	changes func(n int) // what change does
}

func newWhole(m *mesh.Mesh) *whole { return newWholeOf(m, discovery.Options{}) }

// newWholeOf works like newWhole, with some settings.
func newWholeOf(m *mesh.Mesh, o discovery.Options) *whole {
	o.Sources, o.Log, o.Build = []string{mesh.Source}, slog.New(slog.NewTextHandler(io.Discard, nil)), "bench"
	s := discovery.New(o)
	s.Store.Apply(m.Events())
	s.Store.Synced(mesh.Source)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	return &whole{server: s, mesh: m, stop: func() { cancel(); <-done }}
}

func (w *whole) serve(t fleet.Transport) func() {
	return serve(w.server.Streams.GRPC(nil, grpc.StreamInterceptor(intercept(&w.counter))), t)
}

func (w *whole) change(n int) { w.changes(n) }

// endpoint and route are changes.
func (w *whole) endpoint(n int) { w.server.Store.Apply(w.mesh.EndpointChange(n)) }
func (w *whole) route(n int)    { w.server.Store.Apply(w.mesh.RouteChange(n)) }

// sent returns how many responses the shards have sent.
func (w *whole) sent() (n int) {
	for _, f := range w.server.Shards.Stats() {
		n += int(f.Sent)
	}
	return n
}

// bare is a null server that sends the bytes that pilotd sends.
type bare struct {
	*nullserver.Server
	bytes []byte // of a change
}

func (s *bare) serve(t fleet.Transport) func() { return serve(s.GRPC(), t) }
func (s *bare) change(int)                     { s.Broadcast(s.bytes) }

// counter counts the requests that the readers of all streams have handed on.
type counter struct {
	mu sync.Mutex
	// Guarded by mu.
	requests, want int
	reached        chan struct{}
}

// intercept lets a stream's handler count.
func intercept(c *counter) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return handler(srv, &countedStream{ServerStream: ss, counter: c})
	}
}

// countedStream counts a request when the next one is asked for: then it has been handed on.
type countedStream struct {
	grpc.ServerStream
	counter *counter
	begun   bool
}

// RecvMsg implements grpc.ServerStream.
func (s *countedStream) RecvMsg(m any) error {
	if s.begun {
		s.counter.count()
	}
	s.begun = true
	return s.ServerStream.RecvMsg(m)
}

func (c *counter) count() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	c.tell()
}

// tell wakes Await. The caller holds mu.
func (c *counter) tell() {
	if c.reached != nil && c.requests >= c.want {
		close(c.reached)
		c.reached = nil
	}
}

// Await implements system.
func (c *counter) Await(ctx context.Context, n int) error {
	c.mu.Lock()
	reached := make(chan struct{})
	c.want, c.reached = n, reached
	c.tell()
	c.mu.Unlock()
	select {
	case <-reached:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// crowd is a system with its clients, and how far they are.
type crowd struct {
	system
	stopServer func()
	fleet      *fleet.Remote
	clients    int
	// responses and requests are those that there have been in all.
	responses, requests int
}

// gather lets clients first, first+1, … of a mesh connect to a system and waits until they have everything.
func gather(b testing.TB, s system, p fleet.Plan) *crowd {
	transport, err := fleet.Unix(b.TempDir())
	must(b, err)
	c := &crowd{system: s, stopServer: s.serve(transport), clients: p.Clients}
	p.Network, p.Address = "unix", transport.Addr().String()
	c.fleet, err = fleet.Spawn(p)
	must(b, err)
	c.responses = p.Clients * len(p.Subscriptions)
	c.requests = 2 * c.responses
	must(b, c.fleet.Await(c.responses))
	must(b, c.Await(b.Context(), c.requests))
	return c
}

// push makes the n-th change and returns when every client has it and has said so.
func (c *crowd) push(b testing.TB, n int) {
	c.change(n)
	c.responses += c.clients
	must(b, c.fleet.Await(c.responses))
}

// settle waits until the server has read the ACKs.
func (c *crowd) settle(b testing.TB) {
	c.requests += c.clients
	must(b, c.Await(b.Context(), c.requests))
}

func (c *crowd) leave(b testing.TB) {
	must(b, c.fleet.Close())
	c.stopServer()
}

// later is a system that has read some requests already.
type later struct {
	system
	before int
}

// Await implements system.
func (l *later) Await(ctx context.Context, n int) error { return l.system.Await(ctx, l.before+n) }

// nodesOf returns the encoded nodes of workloads first to last-1.
func nodesOf(b testing.TB, m *mesh.Mesh, first, last int) (out [][]byte) {
	for i := first; i < last; i++ {
		n, err := proto.Marshal(m.Node(i % m.Workloads()))
		must(b, err)
		out = append(out, n)
	}
	return out
}
