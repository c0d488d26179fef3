package bench

import (
	"runtime"
	"runtime/metrics"
	"slices"
	"testing"
	"time"

	"github.com/pilotd/pilotd/bench/fleet"
	"github.com/pilotd/pilotd/bench/mesh"
	"github.com/pilotd/pilotd/cmd/pilotd/discovery"
	"github.com/pilotd/pilotd/shard/grpcstream"
)

const (
	// hostilePace is how often each hostile client does something.
	hostilePace = 2 * time.Second
	// changesEach is how many endpoint changes are timed with the hostile clients, and without them, each time.
	changesEach = 40
)

// besieged is pilotd with well-behaved clients, and hostile ones that come and go.
type besieged struct {
	*whole
	good    *crowd
	open    fleet.Transport // for hostile clients
	stop    func()
	changes int
}

// podOf512 are the limits that pilotd has in a pod of 512 MiB: docs/limits.md has their shares.
func podOf512() discovery.Options {
	const memory = 512 << 20
	return discovery.Options{
		Named: memory / 8, Underway: memory / 16, Stuck: 30 * time.Second, RequestTime: 20 * time.Second,
		Limits: grpcstream.Limits{ReceivedInAll: memory / 32, HeldInAll: memory / 4, Streams: memory / (64 << 10)},
	}
}

// besiege lets one well-behaved sidecar connect.
func besiege(b testing.TB, services int) *besieged {
	m := mesh.New(mesh.Usual(services))
	rec := record(b, newWhole(m), false)
	w := newWholeOf(m, podOf512())
	w.changes = w.endpoint
	open, err := fleet.Unix(b.TempDir())
	must(b, err)
	s := &besieged{whole: w, open: open, stop: serve(w.server.Streams.GRPC(nil), open)}
	s.good = gather(b, w, fleet.Plan{Clients: 1, Nodes: nodesOf(b, m, 0, 1), Subscriptions: rec.subscriptions})
	return s
}

// end lets everybody leave.
func (s *besieged) end(b testing.TB) {
	s.good.leave(b)
	s.stop()
	s.whole.stop()
}

// attack lets hostile clients connect, and returns when each has done something several times.
func (s *besieged) attack(b testing.TB, clients int, pace time.Duration) *fleet.Remote {
	f, err := fleet.Spawn(fleet.Plan{Network: "unix", Address: s.open.Addr().String(), Clients: clients, Pace: pace})
	must(b, err)
	must(b, f.Await(4*clients))
	return f
}

// withdraw lets the hostile clients leave, and returns when the server has noticed.
func (s *besieged) withdraw(b testing.TB, f *fleet.Remote) {
	must(b, f.Close())
	for deadline := time.Now().Add(time.Minute); s.server.Streams.Streams() > 1 ||
		s.server.Shards.Streams() > 1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("%d streams are open, and %d attached, of clients that have left", s.server.Streams.Streams()-1,
				s.server.Shards.Streams()-1)
		}
	}
}

// times are how long changes take, each until the well-behaved client has it and the server its ACK.
func (s *besieged) times(b testing.TB) (out []time.Duration) {
	for range changesEach {
		began := time.Now()
		s.good.push(b, s.changes)
		out = append(out, time.Since(began))
		s.good.settle(b)
		s.changes++
		time.Sleep(25 * time.Millisecond)
	}
	return out
}

// median is the median of times, in microseconds.
func median(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/2].Nanoseconds()) / 1e3
}

// mapped is the memory that the process has from the system, garbage included.
func mapped() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

// peak measures the most that is mapped until stop is called.
func peak() (stop func() uint64) {
	quit, most := make(chan struct{}), make(chan uint64)
	go func() {
		top := mapped()
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				top = max(top, mapped())
			case <-quit:
				most <- top
				return
			}
		}
	}()
	return func() uint64 { close(quit); return <-most }
}

// BenchmarkHostileFleet is what 500 hostile clients cost that do all at once that clients can do: memory beyond that of
// the idle server, live and at its highest, and the time of an endpoint change to a well-behaved sidecar beside them
// over what it takes without them, of medians. One op is 40 changes with them and 40 without.
func BenchmarkHostileFleet(b *testing.B) {
	services, clients := 1000, 500
	if testing.Short() {
		services, clients = 100, 100
	}
	s := besiege(b, services)
	defer s.end(b)
	var with, without []time.Duration
	var held, top float64
	base := live()
	n := 0.
	for b.Loop() {
		n++
		without = append(without, s.times(b)...)
		before := mapped()
		most := peak()
		f := s.attack(b, clients, hostilePace)
		with = append(with, s.times(b)...)
		top = max(top, float64(most())-float64(before))
		held = max(held, float64(live())-float64(base))
		s.withdraw(b, f)
	}
	b.ReportMetric(held/(1<<20), "MiB")
	b.ReportMetric(top/(1<<20), "peak-MiB")
	b.ReportMetric((float64(live())-float64(base))/(1<<20), "MiB-left")
	b.ReportMetric(median(with), "µs/change")
	b.ReportMetric(median(without), "alone-µs/change")
	b.ReportMetric(median(with)/median(without), "time/alone")
}

// Hostile clients hold no more than half a MiB each and what all of them may name, while a well-behaved one is served;
// and nothing when they have left.
func TestHostileFleetIsBounded(t *testing.T) {
	const clients, each, left = 45, 512 << 10, 16 << 20
	s := besiege(t, 100)
	defer s.end(t)
	base := live()
	f := s.attack(t, clients, 200*time.Millisecond)
	s.good.push(t, 0)
	s.good.settle(t)
	if grown := int64(live()) - int64(base); grown > clients*each+int64(podOf512().Named) {
		t.Errorf("%d hostile clients hold %d KiB", clients, grown>>10)
	}
	s.withdraw(t, f)
	var grown int64
	for range 10 { // what has left is found by one collection, and forgotten after the next
		if grown = int64(live()) - int64(base); grown <= left {
			break
		}
		runtime.Gosched()
	}
	if grown > left {
		t.Errorf("%d KiB are left of hostile clients that are gone, %d of names", grown>>10, s.server.Names.Held()>>10)
	}
	if p, n := s.server.Planner.Held(), s.server.Shards.Streams(); p.Clients != 1 || p.Classes != 1 || n != 1 {
		t.Errorf("%d streams are attached and %+v planned for, want one", n, p)
	}
}
