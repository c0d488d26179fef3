package bench

import (
	"testing"
	"time"

	"github.com/pilotd/pilotd/bench/fleet"
	"github.com/pilotd/pilotd/bench/mesh"
	"github.com/pilotd/pilotd/bench/nullserver"
)

// cost is what something took: this process's CPU time, which is the server's, and time.
type cost struct {
	cpu, time time.Duration
	n         int
}

// measure adds what f takes.
func (c *cost) measure(f func()) {
	cpu, start := cpuTime(), time.Now()
	f()
	c.time += time.Since(start)
	c.cpu += cpuTime() - cpu
	c.n++
}

// report reports a cost for each of clients, and its ratio to the null server's.
func report(b *testing.B, pilotd, null cost, clients int) {
	b.ReportMetric(float64(pilotd.cpu.Nanoseconds())/1e3/float64(pilotd.n*clients), "cpu-µs/client")
	b.ReportMetric(float64(null.cpu.Nanoseconds())/1e3/float64(null.n*clients), "null-cpu-µs/client")
	b.ReportMetric(float64(pilotd.cpu)/float64(null.cpu), "cpu/null")
	b.ReportMetric(float64(pilotd.time)/float64(null.time), "time/null")
}

// scale returns the size of the benchmarks of whole paths, the one that docs/benchmarks.md speaks of.
func scale() (m *mesh.Mesh, clients int) { return mesh.New(mesh.Usual(1000)), 1000 }

func protocols() map[string]bool { return map[string]bool{"sotw": false, "delta": true} }

// BenchmarkChange is one change, from Store.Apply until every client has it and the server has every ACK, in turn with
// the same on the null server. One op is one change on both; the metrics tell them apart.
func BenchmarkChange(b *testing.B) {
	for name, delta := range protocols() {
		b.Run(name, func(b *testing.B) {
			m, clients := scale()
			rec := record(b, newWhole(m), delta)
			plan := fleet.Plan{Clients: clients, Delta: delta, Nodes: nodesOf(b, m, 0, clients),
				Subscriptions: rec.subscriptions}
			w, null := newWhole(m), &bare{Server: nullserver.New(rec.opening)}
			defer w.stop()
			pilotd, other := gather(b, w, plan), gather(b, null, plan)
			defer other.leave(b)
			defer pilotd.leave(b)
			b.Run("endpoint", func(b *testing.B) {
				w.changes, null.bytes = w.endpoint, rec.endpoint
				compare(b, w, pilotd, other)
			})
			b.Run("route", func(b *testing.B) {
				w.changes, null.bytes = w.route, rec.route
				compare(b, w, pilotd, other)
			})
		})
	}
}

// compare makes changes on both, in turn.
func compare(b *testing.B, w *whole, pilotd, null *crowd) {
	var ours, theirs cost
	sent, bytes := w.sent(), uint64(0)
	n := 0
	for b.Loop() {
		theirs.measure(func() { null.push(b, n); null.settle(b) })
		before := allocated()
		ours.measure(func() { pilotd.push(b, n); pilotd.settle(b) })
		bytes += allocated() - before
		n++
	}
	if got := w.sent() - sent; got != n*pilotd.clients {
		b.Errorf("%d responses for %d changes to %d clients: some were not needed", got, n, pilotd.clients)
	}
	if n%2 == 1 { // back to where it was
		pilotd.push(b, n)
		pilotd.settle(b)
	}
	report(b, ours, theirs, pilotd.clients)
	b.ReportMetric(float64(bytes)/float64(n), "pilotd-B/change")
}
