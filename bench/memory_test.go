package bench

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/pilotd/pilotd/bench/fleet"
	"github.com/pilotd/pilotd/bench/mesh"
	"github.com/pilotd/pilotd/bench/nullserver"
)

// live returns what is in use after collections, which give back stacks too, half at a time; without the gaps that
// earlier runs left between objects.
func live() uint64 {
	for range 5 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// BenchmarkMemory is what a connected sidecar that has everything keeps in memory, on pilotd and on the null server:
// what the last four fifths of the clients add, for the first bring what all share. They are of different services, as
// far as there are that many.
func BenchmarkMemory(b *testing.B) {
	const clients = 1000
	for _, services := range upTo(100, 10_000) {
		for name, delta := range protocols() {
			b.Run(fmt.Sprintf("%s/services=%d", name, services), func(b *testing.B) {
				m := mesh.New(mesh.Usual(services))
				first := clients / 5
				rec := record(b, newWhole(m), delta)
				slope := func(s system) float64 {
					early := gather(b, s, fleet.Plan{Clients: first, Delta: delta, Nodes: nodesOf(b, m, 0, first),
						Subscriptions: rec.subscriptions})
					base := live()
					late := gather(b, &later{s, early.requests}, fleet.Plan{Clients: clients - first, Delta: delta,
						Nodes: nodesOf(b, m, first, clients), Subscriptions: rec.subscriptions})
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
}
