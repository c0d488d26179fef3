package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/pilotd/pilotd/bench/fleet"
	"github.com/pilotd/pilotd/bench/mesh"
	"github.com/pilotd/pilotd/cmd/pilotd/discovery"
	"github.com/pilotd/pilotd/shard/grpcstream"
)

const (
	// hostilePace is how often each hostile client does something.
	hostilePace = 2 * time.Second
	// changePace is how often an endpoint changes.
	changePace = 25 * time.Millisecond
	// changesEach is how many changes are timed with the hostile clients, without them, and beside a busy process, each
	// time: they take two of the hostile clients' paces.
	changesEach = int(2 * hostilePace / changePace)
)

// besieged is pilotd with well-behaved clients, and hostile ones that come and go.
type besieged struct {
	*whole
	good    *crowd
	changes int
}

// siege are hostile clients, and the port that they come to.
type siege struct {
	*fleet.Remote
	port   *grpc.Server
	served chan error
}

// podOf512 returns the limits that pilotd has in a pod of 512 MiB: docs/limits.md has their shares.
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
	s := &besieged{whole: w}
	s.good = gather(b, w, fleet.Plan{Clients: 1, Nodes: nodesOf(b, m, 0, 1), Subscriptions: rec.subscriptions})
	return s
}

// end lets everybody leave.
func (s *besieged) end(b testing.TB) {
	s.good.leave(b)
	s.whole.stop()
}

// attack lets hostile clients connect, and returns when each has done something several times.
func (s *besieged) attack(b testing.TB, clients int, pace time.Duration) *siege {
	port, err := fleet.Unix(b.TempDir())
	must(b, err)
	a := &siege{port: s.server.Streams.GRPC(nil, grpc.WaitForHandlers(true)), served: make(chan error, 1)}
	go func() { a.served <- a.port.Serve(port) }()
	a.Remote, err = fleet.Spawn(fleet.Plan{Network: "unix", Address: port.Addr().String(), Clients: clients, Pace: pace})
	must(b, err)
	must(b, a.Await(4*clients))
	return a
}

// withdraw lets the hostile clients leave, and returns when the server is done with all of them.
func (s *besieged) withdraw(b testing.TB, a *siege) {
	must(b, a.Close())
	a.port.GracefulStop()
	must(b, <-a.served)
	if open, attached := s.server.Streams.Streams(), s.server.Shards.Streams(); open != 1 || attached != 1 {
		b.Fatalf("%d streams are open, and %d attached, of clients that have left", open-1, attached-1)
	}
}

// times returns how long n changes take, each until the well-behaved client has it, by its own clock.
func (s *besieged) times(b testing.TB, n int) (out []time.Duration) {
	due := time.NewTicker(changePace)
	defer due.Stop()
	for range n {
		began := time.Now()
		s.good.push(b, s.changes)
		out = append(out, s.good.fleet.Reached().Sub(began))
		s.good.settle(b)
		s.changes++
		<-due.C
	}
	return out
}

// quantile returns the one of times below which a part of them is, in microseconds.
func quantile(times []time.Duration, part float64) float64 {
	slices.Sort(times)
	return float64(times[int(part*float64(len(times)))].Nanoseconds()) / 1e3
}

// processorTime returns how long the threads of this process have run and have waited for a processor, in seconds;
// Linux alone tells.
func processorTime(b testing.TB) (ran, waited float64) {
	tasks, err := filepath.Glob("/proc/self/task/*/schedstat")
	must(b, err)
	for _, path := range tasks {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		var r, w float64
		if _, err := fmt.Sscan(string(text), &r, &w); err == nil {
			ran, waited = ran+r/1e9, waited+w/1e9
		}
	}
	return ran, waited
}

// mapped returns the memory that the process has from the system, garbage included.
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
// the idle server, live and at its highest, and the time until a well-behaved sidecar beside them has an endpoint
// change, as medians and nine tenths, over what it takes without them. busy is the same beside a process that talks to
// nobody and keeps the processors as busy as the process of the hostile clients does: no server can be better than
// that. waited/ran is how long the server's threads waited for a processor during the attack, over how long they had
// one: what the system, not the server, makes changes wait. One op is three times 160 changes.
func BenchmarkHostileFleet(b *testing.B) {
	services, clients, changes := 1000, 500, changesEach
	if testing.Short() {
		services, clients, changes = 100, 100, changesEach/4
	}
	s := besiege(b, services)
	defer s.end(b)
	var with, without, beside []time.Duration
	var held, top, processors, wait float64
	base := live()
	n := 0.
	for b.Loop() {
		n++
		without = append(without, s.times(b, changes)...)
		before := mapped()
		most := peak()
		f := s.attack(b, clients, hostilePace)
		ran, waited := processorTime(b)
		with = append(with, s.times(b, changes)...)
		ranNow, waitedNow := processorTime(b)
		wait += (waitedNow - waited) / max(ranNow-ran, 1e-9)
		top = max(top, float64(most())-float64(before))
		held = max(held, float64(live())-float64(base))
		s.withdraw(b, f)
		processors += f.Processors()
		busy, err := fleet.Spawn(fleet.Plan{Busy: f.Processors()})
		must(b, err)
		must(b, busy.Await(0))
		beside = append(beside, s.times(b, changes)...)
		must(b, busy.Close())
	}
	b.ReportMetric(held/(1<<20), "MiB")
	b.ReportMetric(top/(1<<20), "peak-MiB")
	b.ReportMetric((float64(live())-float64(base))/(1<<20), "MiB-left")
	for part, name := range map[float64]string{0.5: "", 0.9: "-p90"} {
		b.ReportMetric(quantile(with, part), "µs/change"+name)
		b.ReportMetric(quantile(without, part), "alone-µs/change"+name)
		b.ReportMetric(quantile(beside, part), "busy-µs/change"+name)
	}
	b.ReportMetric(quantile(with, 0.5)/quantile(without, 0.5), "time/alone")
	b.ReportMetric(processors/n, "clients-processors")
	b.ReportMetric(wait/n, "waited/ran")
}

// Hostile clients hold no more than half a MiB each, what all of them may name, and twice what may be received of large
// requests at a time, while a well-behaved one is served; and nothing when they have left.
func TestHostileFleetIsBounded(t *testing.T) {
	const clients, each, left = 45, 512 << 10, 16 << 20
	s := besiege(t, 100)
	defer s.end(t)
	base := live()
	f := s.attack(t, clients, 200*time.Millisecond)
	s.good.push(t, 0)
	s.good.settle(t)
	most := clients*each + int64(podOf512().Named) + 2*int64(podOf512().Limits.ReceivedInAll)
	if grown := int64(live()) - int64(base); grown > most {
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
		t.Errorf("%d KiB are left of hostile clients that are gone, %d of names", grown>>10, s.server.Names.Bytes()>>10)
	}
	if p, n := s.server.Planner.Counts(), s.server.Shards.Streams(); p.Clients != 1 || p.Classes != 1 || n != 1 {
		t.Errorf("%d streams are attached and %+v planned for, want one", n, p)
	}
}
