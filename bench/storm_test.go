package bench

import (
	"runtime"
	"testing"

	"github.com/pilotd/pilotd/bench/fleet"
	"github.com/pilotd/pilotd/bench/nullserver"
)

// BenchmarkStorm is all clients connecting at once and getting everything, to a pilotd that has just read its mesh and
// has planned nothing, in turn with the same on the null server.
func BenchmarkStorm(b *testing.B) {
	for name, delta := range protocols() {
		b.Run(name, func(b *testing.B) {
			m, clients := scale()
			rec := record(b, newWhole(m), delta)
			plan := fleet.Plan{Clients: clients, Delta: delta, Nodes: nodesOf(b, m, 0, clients),
				Subscriptions: rec.subscriptions}
			var ours, theirs cost
			var bytes uint64
			for b.Loop() {
				null := &bare{Server: nullserver.New(rec.opening)}
				runtime.GC()
				var c *crowd
				theirs.measure(func() { c = gather(b, null, plan) })
				c.leave(b)
				w := newWhole(m)
				runtime.GC()
				before := allocated()
				ours.measure(func() { c = gather(b, w, plan) })
				bytes += allocated() - before
				if got := w.sent(); got != c.responses {
					b.Errorf("%d responses, where %d were asked for", got, c.responses)
				}
				c.leave(b)
				w.stop()
			}
			report(b, ours, theirs, clients)
			b.ReportMetric(float64(bytes)/float64(ours.n*clients), "pilotd-B/client")
		})
	}
}

// allocated returns how many bytes this process has allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
