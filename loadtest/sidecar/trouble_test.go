package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotd/pilotd/loadtest/wire"
	"github.com/pilotd/pilotd/xdstype"
)

// place is a server that can be down.
type place struct {
	grpc     *grpc.Server
	listener *bufconn.Listener
	served   chan error
}

// town is some servers, and a fleet that records what happens to it.
type town struct {
	t      *testing.T
	places []*place
	fleet  *Fleet

	mu sync.Mutex
	// Guarded by mu.
	ready map[int]int // by client: how often
	ended map[int]int
	dials []int // by target
}

func build(t *testing.T, servers int, o Options) *town {
	w := &town{t: t, ready: map[int]int{}, ended: map[int]int{}, dials: make([]int, servers)}
	for range servers {
		w.places = append(w.places, nil)
		w.up(len(w.places) - 1)
	}
	o.Targets = servers
	o.Dial = func(ctx context.Context, target, client int) (net.Conn, wire.Header, error) {
		w.mu.Lock()
		p := w.places[target]
		w.dials[target]++
		w.mu.Unlock()
		if p == nil {
			return nil, wire.Header{}, errors.New("nobody there")
		}
		conn, err := p.listener.DialContext(ctx)
		return conn, wire.Header{}, err
	}
	o.Spec = func(i int) (Spec, error) { return spec(t, fmt.Sprint("n", i)), nil }
	o.Observe = func(i int, _ time.Time, r *Receipt) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if r.Ready {
			w.ready[i]++
		}
	}
	o.Ended = func(i int, _ error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ended[i]++
	}
	f, err := Start(t.Context(), o)
	must(t, err)
	w.fleet = f
	return w
}

func spec(t *testing.T, name string) Spec {
	b, err := proto.Marshal(node(name))
	must(t, err)
	return Spec{Node: b}
}

// up starts a server.
func (w *town) up(i int) {
	p := &place{grpc: grpc.NewServer(), listener: bufconn.Listen(64 << 10), served: make(chan error, 1)}
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(p.grpc, &server{opening: map[string][]*anypb.Any{
		xdstype.Cluster.URL(): {
			wrap(w.t, cluster("a", "1")),
		}, xdstype.Endpoint.URL(): {wrap(w.t, endpoints("a", "10.0.0.1"))},
		xdstype.Listener.URL(): {
			wrap(w.t, listener(w.t, "l", "80", false)),
		}, xdstype.Route.URL(): {wrap(w.t, routes("80", "x"))}}})
	go func() { p.served <- p.grpc.Serve(p.listener) }()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.places[i] = p
}

// down stops a server.
func (w *town) down(i int) {
	w.mu.Lock()
	p := w.places[i]
	w.places[i] = nil
	w.mu.Unlock()
	if p != nil {
		p.grpc.Stop()
		<-p.served
	}
}

func (w *town) close() {
	w.fleet.Close()
	for i := range w.places {
		w.down(i)
	}
}

// expect compares how often each client was ready, after some time, and how many streams are open.
func (w *town) expect(after time.Duration, streams int, ready ...int) {
	w.t.Helper()
	time.Sleep(after) // of the bubble: it takes none
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	var got []int
	for i := range ready {
		got = append(got, w.ready[i])
	}
	if !slices.Equal(got, ready) || w.fleet.Streams() != streams {
		w.t.Errorf("ready %v, want %v; %d streams, want %d", got, ready, w.fleet.Streams(), streams)
	}
}

// Clients whose server dies move to the next, and find it again when it is the only one.
func TestServersDie(t *testing.T) {
	for _, shared := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			w := build(t, 2, Options{Clients: 4, PerConnection: shared})
			defer w.close()
			w.expect(time.Second, 4, 1, 1, 1, 1)
			if w.dials[0] != 2/shared || w.dials[1] != 2/shared {
				t.Error(w.dials, "are not spread")
			}
			w.down(0)
			want := []int{2, 1, 2, 1}
			if shared == 2 {
				want = []int{2, 2, 1, 1}
			}
			w.expect(time.Second, 4, want...)
			w.down(1)
			w.expect(time.Minute, 0, want...)
			w.up(0)
			for i := range want {
				want[i]++
			}
			w.expect(time.Minute, 4, want...)
		})
	}
}

// Who hangs up is back at once, who is cut off after the back-off, who leaves when told.
func TestPartings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := build(t, 1, Options{Clients: 2})
		defer w.close()
		w.expect(0, 2, 1, 1)
		w.fleet.Reconnect()
		w.expect(0, 2, 2, 2)
		w.fleet.Cut(0)
		w.expect(time.Second, 2, 3, 2)
		for _, how := range []Parting{Orderly, Abrupt, Silent} {
			w.fleet.Leave(0, how)
			w.expect(time.Hour, 1, 3+int(how), 2)
			w.fleet.Return(0)
			w.expect(0, 2, 4+int(how), 2)
		}
		if w.ended[0] != 1 || w.ended[1] != 0 {
			t.Error(w.ended, "ended that the clients did not end")
		}
	})
}

// A replaced client begins with nothing, whether its connection is its own or shared; the others go on.
func TestReplacedClientsHaveNothing(t *testing.T) {
	for _, shared := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			w := build(t, 1, Options{Clients: 2, PerConnection: shared})
			defer w.close()
			w.expect(0, 2, 1, 1)
			before := w.fleet.Counts()
			w.fleet.Replace(0, spec(t, "other"))
			w.expect(0, 2, 2, 1)
			after := w.fleet.Counts()
			for _, of := range Types() {
				if c := after[of].Since(before[of]); c.Messages != 1 {
					t.Errorf("%s: %+v", of, c)
				}
			}
			if w.ended[0]+w.ended[1] != 0 {
				t.Error(w.ended)
			}
		})
	}
}

// Clients that stall or are slow get late what they get.
func TestStalledAndSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := build(t, 1, Options{Clients: 3, Dialing: 1})
		defer w.close()
		w.expect(0, 3, 1, 1, 1)
		w.fleet.Stall(0, true)
		w.fleet.Slow(1, 1)
		w.fleet.Reconnect()
		w.expect(time.Second, 3, 1, 1, 2)
		w.fleet.Stall(0, false)
		w.fleet.Slow(1, 1<<20)
		w.expect(time.Hour, 3, 2, 2, 2)
		w.fleet.Stall(2, true)
		w.fleet.Cut(2)
		w.fleet.Stall(2, false)
		w.expect(time.Second, 3, 2, 2, 3)
	})
}

// A stream that a server ends by itself is followed by another on the same connection.
func TestStreamsThatEndAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := build(t, 1, Options{Clients: 2, PerConnection: 2})
		defer w.close()
		w.expect(0, 2, 1, 1)
		m := w.fleet.members[0]
		m.mu.Lock()
		s := m.session
		m.mu.Unlock()
		s.Ended(wire.ErrEnded)
		w.expect(time.Second, 2, 2, 1)
		if w.dials[0] != 1 || w.ended[0] != 1 {
			t.Error(w.dials, w.ended)
		}
	})
}

func TestBackoffGrows(t *testing.T) {
	var e, g backoff
	for i, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second,
		8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second} {
		if got := e.next(Sidecar, 1); got != want {
			t.Errorf("failure %d: %s, want %s", i+1, got, want)
		}
	}
	if got := e.next(Gateway, 0); got != 0 {
		t.Error("the jitter is not full:", got)
	}
	if a, b := g.next(Proxyless, 0), g.next(Proxyless, 1); a != 800*time.Millisecond || b != 1920*time.Millisecond {
		t.Error(a, b)
	}
	g.failures = 100
	if got := g.next(Proxyless, 0.5); got != 2*time.Minute {
		t.Error(got)
	}
}
