package bench

import (
	"runtime"
	"testing"

	"github.com/pilotd/pilotd/bench/fleet"
	"github.com/pilotd/pilotd/bench/nullserver"
)

// BenchmarkStorm is all clients connecting at once and getting everything, to a pilotd that has just read its mesh and has planned nothing,
// in turn with the same on the null server.
func BenchmarkStorm(b *testing.B) {
	for name, delta := range protocols() {
		b.Run(name, func(b *testing.B) {
			m, clients := scale()
			rec := record(b, newWhole(m), delta)
			plan := fleet.Plan{Clients: clients, Delta: delta, Nodes: nodesOf(b, m, 0, clients), Subscriptions: rec.subscriptions}
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

// allocated is how many bytes this process has allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// live is what is in use after collections, which give back stacks too, half at a time; without the gaps that earlier runs left between
// objects.
func live() uint64 {
	for range 5 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// BenchmarkMemory is what a connected sidecar that has everything keeps in memory, on pilotd and on the null server: what the last
// four fifths of the clients add, for the first bring what all share.
func BenchmarkMemory(b *testing.B) {
	for name, delta := range protocols() {
		b.Run(name, func(b *testing.B) {
			m, clients := scale()
			first := clients / 5
			rec := record(b, newWhole(m), delta)
			slope := func(s system) float64 {
				early := gather(b, s, fleet.Plan{Clients: first, Delta: delta, Nodes: nodesOf(b, m, 0, first), Subscriptions: rec.subscriptions})
				base := live()
				late := gather(b, &later{s, early.requests}, fleet.Plan{Clients: clients - first, Delta: delta, Nodes: nodesOf(b, m, first, clients), Subscriptions: rec.subscriptions})
				grown := float64(live()) - float64(base)
				late.leave(b)
				early.leave(b)
				return grown / float64(clients-first)
			}
			var ours, theirs float64
			n := 0.
			for b.Loop() {
				n++
				theirs += slope(&bare{Server: nullserver.New(rec.opening)})
				w := newWhole(m)
				ours += slope(w)
				w.stop()
			}
			b.ReportMetric(ours/n/1024, "KiB/client")
			b.ReportMetric(theirs/n/1024, "null-KiB/client")
			b.ReportMetric((ours-theirs)/n/1024, "KiB-beyond-null")
		})
	}
}
