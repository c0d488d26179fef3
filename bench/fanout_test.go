package bench

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"

	"github.com/pilotd/pilotd/bench/fleet"
	"github.com/pilotd/pilotd/bench/nullserver"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/shard/grpcstream"
	"github.com/pilotd/pilotd/xdstype"
)

func TestMain(m *testing.M) {
	fleet.Child()
	os.Exit(m.Run())
}

// cpuTime returns what this process has used.
func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// broadcaster is a server that sends one change to all its streams.
type broadcaster interface {
	// serve serves the transport until stop.
	serve(fleet.Transport) (stop func())
	// broadcast sends the n-th change to all, and returns when that is out of its hands.
	broadcast(n int)
}

// null sends bytes that are built once.
type null struct {
	*nullserver.Server
	change []byte
}

func (s *null) serve(t fleet.Transport) func() { return serve(s.GRPC(), t) }
func (s *null) broadcast(int)                  { s.Broadcast(s.change) }

func serve(g *grpc.Server, t fleet.Transport) func() {
	done := make(chan error, 1)
	go func() { done <- g.Serve(t) }()
	return func() { g.Stop(); <-done }
}

// direct is the transport of pilotd without what decides: one worker assembles a response for each change, and sends it
// to all.
type direct struct {
	server  *grpcstream.Server
	opening map[string]*encodecache.Response
	change  []*encodecache.Entry

	mu sync.Mutex
	// Guarded by mu.
	streams map[uint64]shard.Stream
}

func newDirect(opening map[string]*encodecache.Response, change []*encodecache.Entry) *direct {
	d := &direct{opening: opening, change: change, streams: map[uint64]shard.Stream{}}
	d.server = grpcstream.New(d, grpcstream.Options{
		Accept: func(n *corev3.Node, _ proxy.Peer) (*proxy.Proxy, error) { return &proxy.Proxy{ID: n.Id}, nil },
	})
	return d
}

func (d *direct) Attach(s shard.Stream, _ *proxy.Proxy, first ads.Request) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.streams[s.ID()] = s
	s.Send(first.TypeURL, d.opening[first.TypeURL])
	return nil
}

func (d *direct) Receive(id uint64, r ads.Request) {
	if r.Nonce != "" {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if o := d.opening[r.TypeURL]; o != nil {
		d.streams[id].Send(r.TypeURL, o)
	}
}

func (d *direct) Detach(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.streams, id)
}

func (d *direct) serve(t fleet.Transport) func() { return serve(d.server.GRPC(nil), t) }

func (d *direct) broadcast(n int) {
	r := encodecache.AssembleSotW(encodecache.Header{TypeURL: xdstype.EndpointURL, Version: "0123456789012345678901",
		Nonce: fmt.Sprint(n)}, d.change)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.streams {
		s.Send(xdstype.EndpointURL, r)
	}
}

// scene is the size of a mesh as it is seen by the transport.
type scene struct {
	name  string
	delta bool
	names int // that the client subscribes to, and a State-of-the-World ACK repeats
	parts int // of the change
	size  int // of each part
}

func (s scene) change() *encodecache.Entry {
	parts := make([]*encodecache.Fragment, s.parts)
	for i := range parts {
		parts[i] = encodecache.NewFragment(make([]byte, s.size))
	}
	return encodecache.NewComposite(xdstype.EndpointURL, "outbound|80||service-0.ns.svc.cluster.local",
		encodecache.NewFragment(nil),
		func(yield func(*encodecache.Fragment) bool) {
			for _, p := range parts {
				if !yield(p) {
					return
				}
			}
		})
}

func (s scene) subscriptions() []fleet.Subscription {
	names := make([]string, s.names)
	for i := range names {
		names[i] = fmt.Sprintf("outbound|80||service-%d.ns.svc.cluster.local", i)
	}
	return []fleet.Subscription{{TypeURL: xdstype.ClusterURL}, {TypeURL: xdstype.EndpointURL, Names: names}}
}

// BenchmarkFanOut sends one change to all clients, on the null server and on pilotd's streams. The clients run in a
// process of their own, so cpu-µs/client is the server's.
func BenchmarkFanOut(b *testing.B) {
	const clients = 1000
	for _, s := range []scene{
		{"endpoint-sotw", false, 1000, 1, 300},
		{"endpoint-delta", true, 1000, 1, 300},
		{"route50KB-sotw", false, 1, 100, 500},
		{"route505KB-delta", true, 1, 1000, 505},
	} {
		change := s.change()
		opening := map[string]*encodecache.Response{}
		openingBytes := map[string][]byte{}
		for _, url := range []string{xdstype.ClusterURL, xdstype.EndpointURL} {
			r := encodecache.AssembleSotW(encodecache.Header{TypeURL: url, Version: "v", Nonce: "1"}, nil)
			opening[url], openingBytes[url] = r, r.Buffers().Materialize()
		}
		bytes := encodecache.AssembleSotW(encodecache.Header{TypeURL: xdstype.EndpointURL, Version: "0123456789012345678901",
			Nonce: "123456"}, []*encodecache.Entry{change}).Buffers().Materialize()
		b.Run(s.name+"/null", func(b *testing.B) {
			fanOut(b, &null{nullserver.New(openingBytes), bytes}, s, clients)
		})
		b.Run(s.name+"/pilotd", func(b *testing.B) {
			fanOut(b, newDirect(opening, []*encodecache.Entry{change}), s, clients)
		})
	}
}

func fanOut(b *testing.B, server broadcaster, s scene, clients int) {
	transport, err := fleet.Unix(b.TempDir())
	must(b, err)
	defer server.serve(transport)()
	subs := s.subscriptions()
	f, err := fleet.Spawn(fleet.Plan{Network: "unix", Address: transport.Addr().String(), Clients: clients,
		Delta: s.delta,
		Node:  []byte(`{"id":"sidecar~10.0.0.1~pod-%d.ns~ns.svc.cluster.local"}`), Subscriptions: subs})
	must(b, err)
	defer func() { must(b, f.Close()) }()
	want := clients * len(subs)
	must(b, f.Await(want))
	before := cpuTime()
	n := 0
	for b.Loop() {
		n++
		server.broadcast(n)
		want += clients
		must(b, f.Await(want))
	}
	b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(n*clients), "cpu-µs/client")
}

func must(b testing.TB, err error) {
	b.Helper()
	if err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		b.Fatal(err)
	}
}
