package grpcstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/xdstype"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// event is something that a Backend was told.
type event struct {
	what   string       // attach, receive, detach
	stream shard.Stream // attach only
	id     uint64
	proxy  *proxy.Proxy
	req    ads.Request
}

// recorder is a Backend that passes on what it is told.
type recorder struct {
	events chan event
	refuse error // of Attach

	mu sync.Mutex
	// Guarded by mu.
	attached map[uint64]bool
}

func newRecorder() *recorder {
	return &recorder{events: make(chan event, 1000), attached: map[uint64]bool{}}
}

func (r *recorder) Attach(s shard.Stream, p *proxy.Proxy, first ads.Request) error {
	if r.refuse != nil {
		return r.refuse
	}
	r.mu.Lock()
	r.attached[s.ID()] = true
	r.mu.Unlock()
	r.events <- event{what: "attach", stream: s, id: s.ID(), proxy: p, req: first}
	return nil
}

func (r *recorder) Receive(id uint64, req ads.Request) {
	r.events <- event{what: "receive", id: id, req: req}
}

func (r *recorder) Detach(id uint64) {
	r.mu.Lock()
	delete(r.attached, id)
	r.mu.Unlock()
	r.events <- event{what: "detach", id: id}
}

// next returns the next event, which must be of this kind.
func (r *recorder) next(t testing.TB, what string) event {
	t.Helper()
	e := <-r.events
	if e.what != what {
		t.Fatalf("the backend was told %q, want %q", e.what, what)
	}
	return e
}

// house is a Server with a Backend, on an in-memory listener.
type house struct {
	server  *Server
	grpc    *grpc.Server
	backend *recorder
	lis     *bufconn.Listener
}

func accept(n *corev3.Node, _ proxy.Peer) (*proxy.Proxy, error) {
	if n.GetId() == "" {
		return nil, errors.New("it has no id")
	}
	return &proxy.Proxy{ID: n.Id}, nil
}

// newHouse makes a Server that does not serve yet.
func newHouse(t testing.TB, o Options, creds credentials.TransportCredentials, more ...grpc.ServerOption) *house {
	t.Helper()
	if o.Accept == nil {
		o.Accept = accept
	}
	h := &house{backend: newRecorder(), lis: bufconn.Listen(1 << 20)}
	h.server = New(h.backend, o)
	h.grpc = h.server.GRPC(creds, more...)
	return h
}

// serve serves until the test ends.
func (h *house) serve(t testing.TB) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := h.grpc.Serve(h.lis); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { h.grpc.Stop(); <-done })
}

// start runs a Server until the test ends.
func start(t testing.TB, o Options, more ...grpc.ServerOption) *house {
	t.Helper()
	h := newHouse(t, o, nil, more...)
	h.serve(t)
	return h
}

// conn returns a connection of its own.
func (h *house) conn(t testing.TB, more ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	more = append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return h.lis.DialContext(ctx) }),
	}, more...)
	conn, err := grpc.NewClient("passthrough:bufconn", more...)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// dial returns a client of the generated stubs.
func (h *house) dial(t testing.TB, more ...grpc.DialOption) discoveryv3.AggregatedDiscoveryServiceClient {
	t.Helper()
	return discoveryv3.NewAggregatedDiscoveryServiceClient(h.conn(t, more...))
}

func (h *house) sotw(t testing.TB) discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient {
	t.Helper()
	c, err := h.dial(t).StreamAggregatedResources(t.Context())
	must(t, err)
	return c
}

func (h *house) delta(t testing.TB) discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient {
	t.Helper()
	c, err := h.dial(t).DeltaAggregatedResources(t.Context())
	must(t, err)
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// nodeOf returns the node of proxy i.
func nodeOf(i int) *corev3.Node {
	return &corev3.Node{Id: fmt.Sprintf("sidecar~10.0.0.%d~pod-%d.ns~ns.svc", i, i)}
}

// leaf returns a resource of size bytes.
func leaf(name string, size int) *encodecache.Entry {
	return encodecache.NewLeaf(xdstype.ClusterURL, name, encodecache.NewFragment(make([]byte, size)))
}

// pieces returns a response that has more than n pieces.
func pieces(nonce string, n int) *encodecache.Response {
	entries := make([]*encodecache.Entry, n)
	for i := range entries {
		entries[i] = leaf(fmt.Sprint(i), 2000)
	}
	return encodecache.AssembleSotW(encodecache.Header{TypeURL: xdstype.ClusterURL, Version: "v", Nonce: nonce}, entries)
}

// response has about size bytes in few pieces.
func response(nonce string, size int) *encodecache.Response {
	return encodecache.AssembleSotW(encodecache.Header{TypeURL: xdstype.ClusterURL, Version: "v", Nonce: nonce},
		[]*encodecache.Entry{leaf("a", size)})
}

// The Shards are the Backend, and streams are what they know of them.
var (
	_ Backend          = (*shard.Shards)(nil)
	_ shard.Stream     = (*stream)(nil)
	_ shard.Backlogged = (*stream)(nil)
)
