package bench

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"github.com/pilotd/pilotd/bench/fleet"
	"github.com/pilotd/pilotd/bench/mesh"
)

// BenchmarkNamespaces connects 1,000 sidecars at once to a mesh of 1,000 services, which lie in more and more
// namespaces: what that takes of CPU, the most memory that was in use meanwhile, and what is left of it.
func BenchmarkNamespaces(b *testing.B) {
	const clients = 1000
	for name, delta := range protocols() {
		for _, namespaces := range upTo(1, 10_000) {
			b.Run(fmt.Sprintf("%s/namespaces=%d", name, namespaces), func(b *testing.B) {
				shape := mesh.Usual(1000)
				shape.Namespaces = namespaces
				m := mesh.New(shape)
				rec := record(b, newWhole(m), delta)
				plan := fleet.Plan{Clients: clients, Delta: delta, Nodes: nodesOf(b, m, 0, clients),
					Subscriptions: rec.subscriptions}
				var connecting cost
				var left, most uint64
				for b.Loop() {
					w := newWhole(m)
					before, peak := live(), watchMemory()
					var c *crowd
					connecting.measure(func() { c = gather(b, w, plan) })
					most += peak() - before
					left += live() - before
					c.leave(b)
					w.stop()
				}
				n := float64(connecting.n)
				b.ReportMetric(float64(connecting.cpu.Milliseconds())/n, "cpu-ms")
				b.ReportMetric(float64(most)/n/(1<<20), "peak-MiB")
				b.ReportMetric(float64(left)/n/(1<<20), "left-MiB")
			})
		}
	}
}

// watchMemory samples what the heap and the stacks take until its result is called, which tells the most.
func watchMemory() (most func() uint64) {
	stop, done := make(chan struct{}), sync.WaitGroup{}
	var peak uint64
	done.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				peak = max(peak, heapNow())
			}
		}
	})
	return func() uint64 {
		close(stop)
		done.Wait()
		return peak
	}
}

// heapNow returns what objects, garbage among them, and stacks take.
func heapNow() (n uint64) {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	for _, s := range samples {
		n += s.Value.Uint64()
	}
	return n
}

// BenchmarkNamespaceScopes plans for one proxy in each of more and more namespaces, all of the default scope: what a
// Scope takes of time and memory, beyond the first.
func BenchmarkNamespaceScopes(b *testing.B) {
	for _, services := range upTo(1000, 10_000) {
		for _, namespaces := range upTo(10, 10_000) {
			b.Run(fmt.Sprintf("services=%d/namespaces=%d", services, namespaces), func(b *testing.B) {
				var bytes float64
				for b.Loop() {
					b.StopTimer()
					p := planValues(valueMesh{services: services, namespaces: namespaces})
					p.attach(b, 1)
					before := live()
					b.StartTimer()
					p.attach(b, namespaces)
					b.StopTimer()
					bytes += float64(live()-before) / float64(namespaces)
					p.stop()
					runtime.KeepAlive(p)
					b.StartTimer()
				}
				b.ReportMetric(bytes/float64(b.N), "B/scope")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*namespaces), "ns/scope")
			})
		}
	}
}

// BenchmarkScopeEdit is an edit of one VirtualService that all connected Scopes see, each of which is another one: in
// namespaces of their own, or with Sidecar objects. The budget is 2 µs of planning for each.
func BenchmarkScopeEdit(b *testing.B) {
	const scopes = 10_000
	for _, services := range upTo(1000, 10_000) {
		for name, m := range map[string]valueMesh{
			"namespaces": {services: services, namespaces: scopes},
			"sidecars":   {services: services, namespaces: services / 20, sidecars: scopes},
		} {
			b.Run(fmt.Sprintf("%s/services=%d", name, services), func(b *testing.B) {
				p := planValues(m)
				defer p.stop()
				p.attach(b, scopes)
				runtime.GC()
				e := routeEdit("seen", 5)
				middle := p.bench(b, e)
				if want := p.n * scopes; p.moved < (p.n-1)*scopes {
					b.Fatalf("%d classes moved, want %d", p.moved, want)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*scopes), "ns/scope")
				b.ReportMetric(float64(middle)/scopes, "middle-cpu-ns/scope")
			})
		}
	}
}
