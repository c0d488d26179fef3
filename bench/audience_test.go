package bench

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/pilotd/pilotd/bench/mesh"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard/ads"
)

// audience is the sidecars of a mesh without connections: each takes what it is sent, ACKs it, and asks for the next
// type.
type audience struct {
	// Immutable after newAudience.
	whole *whole
	names map[string]*ads.Names // that everybody subscribes to, by type
	order []string              // in which a sidecar asks for types
	stop  func()

	mu sync.Mutex
	// Guarded by mu.
	wake          *sync.Cond
	replies       []reply // for the goroutine that answers
	ended         bool
	taken, wanted int // responses
	bytes         int
	reached       chan struct{}
}

// reply is a request that answers a response.
type reply struct {
	seat    *seat
	request ads.Request
}

// seat is one sidecar's place; it implements shard.Stream.
type seat struct {
	// Immutable.
	id       uint64
	audience *audience
	proxy    *proxy.Proxy

	// Owned by the worker goroutine.
	asked int // types in order
}

// newAudience finds out what the sidecars of a mesh subscribe to. Nobody has come yet.
func newAudience(b testing.TB, m *mesh.Mesh) *audience {
	rec := record(b, newWhole(m), false)
	a := &audience{whole: newWhole(m), names: map[string]*ads.Names{}}
	a.wake = sync.NewCond(&a.mu)
	for _, s := range rec.subscriptions {
		a.order = append(a.order, s.TypeURL)
		a.names[s.TypeURL] = a.whole.server.Names.Of(s.Names)
	}
	done := make(chan struct{})
	go func() { a.answer(); close(done) }()
	a.stop = func() {
		a.mu.Lock()
		a.ended = true
		a.wake.Signal()
		a.mu.Unlock()
		<-done
		a.whole.stop()
	}
	return a
}

// seats makes n sidecars of the mesh.
func (a *audience) seats(b testing.TB, n int) []*seat {
	out := make([]*seat, n)
	for i := range out {
		p, err := proxy.Accept(a.whole.mesh.Node(i%a.whole.mesh.Workloads()), proxy.Peer{})
		must(b, err)
		out[i] = &seat{id: uint64(i + 1), audience: a, proxy: p}
	}
	return out
}

// connect lets seats come and returns when they have everything.
func (a *audience) connect(b testing.TB, seats []*seat) {
	done := a.want(len(seats) * len(a.order))
	for _, s := range seats {
		s.asked = 1
		must(b, a.whole.server.Shards.Attach(s, s.proxy, ads.Request{TypeURL: a.order[0]}))
	}
	a.await(b, done)
}

// disconnect lets seats go.
func (a *audience) disconnect(seats []*seat) {
	for _, s := range seats {
		a.whole.server.Shards.Detach(s.id)
	}
}

// want begins to count n more responses.
func (a *audience) want(n int) chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wanted, a.reached = a.taken+n, make(chan struct{})
	return a.reached
}

func (a *audience) await(b testing.TB, reached chan struct{}) {
	select {
	case <-reached:
	case <-b.Context().Done():
		b.Fatal(context.Cause(b.Context()))
	}
}

// answer hands the replies on, from a goroutine of its own as a stream's reader does.
func (a *audience) answer() {
	for {
		a.mu.Lock()
		for len(a.replies) == 0 && !a.ended {
			a.wake.Wait()
		}
		batch := a.replies
		a.replies = nil
		ended := a.ended
		a.mu.Unlock()
		if ended {
			return
		}
		for _, r := range batch {
			a.whole.server.Shards.Receive(r.seat.id, r.request)
		}
	}
}

// ID implements shard.Stream.
func (s *seat) ID() uint64 { return s.id }

// Close implements shard.Stream.
func (s *seat) Close(error) {}

// Send implements shard.Stream.
func (s *seat) Send(url string, r *encodecache.Response) {
	a := s.audience
	out := []reply{{s, ads.Request{TypeURL: url, Nonce: r.Nonce(), Version: "v", Names: a.names[url]}}}
	if s.asked < len(a.order) && url == a.order[s.asked-1] {
		next := a.order[s.asked]
		out = append(out, reply{s, ads.Request{TypeURL: next, Names: a.names[next]}})
		s.asked++
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.replies = append(a.replies, out...)
	a.taken++
	a.bytes += r.Len()
	if a.taken == a.wanted {
		close(a.reached)
	}
	a.wake.Signal()
}

// audienceMesh returns 1,000 services with a pod for each sidecar.
func audienceMesh(sidecars int) *mesh.Mesh {
	s := mesh.Usual(1000)
	s.Pods = max(1, sidecars/s.Services)
	return mesh.New(s)
}

// BenchmarkFleet is pilotd's own part of connecting sidecars and of changes that reach all: no connections, no bytes
// that are written. The cost for each sidecar should not grow with their number.
func BenchmarkFleet(b *testing.B) {
	for _, n := range upTo(100, 100_000) {
		b.Run("sidecars="+strconv.Itoa(n), func(b *testing.B) {
			m := audienceMesh(n)
			b.Run("connect", func(b *testing.B) {
				b.ReportAllocs()
				var used cost
				for b.Loop() {
					b.StopTimer()
					a := newAudience(b, m)
					seats := a.seats(b, n)
					runtime.GC()
					b.StartTimer()
					used.measure(func() { a.connect(b, seats) })
					b.StopTimer()
					a.disconnect(seats)
					a.stop()
					b.StartTimer()
				}
				each(b, used, n)
			})
			a := newAudience(b, m)
			defer a.stop()
			seats := a.seats(b, n)
			defer a.disconnect(seats)
			a.connect(b, seats[:n/5]) // they bring what all share
			base := live()
			a.connect(b, seats[n/5:])
			memory := float64(live()-base) / float64(n-n/5)
			for name, change := range map[string]func(int){"endpoint": a.whole.endpoint, "route": a.whole.route} {
				b.Run(name, func(b *testing.B) {
					b.ReportAllocs()
					var used cost
					i := 0
					for b.Loop() {
						used.measure(func() {
							done := a.want(n)
							change(i)
							a.await(b, done)
						})
						i++
					}
					if i%2 == 1 { // back to where it was
						done := a.want(n)
						change(i)
						a.await(b, done)
					}
					each(b, used, n)
					b.ReportMetric(memory, "held-B/sidecar")
				})
			}
		})
	}
}

// each reports what one sidecar cost.
func each(b *testing.B, c cost, sidecars int) {
	b.ReportMetric(float64(c.cpu.Nanoseconds())/1e3/float64(c.n*sidecars), "cpu-µs/sidecar")
}
