package bench

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
)

// BenchmarkSnapshot is the next Snapshot for one changed object, by kind.
func BenchmarkSnapshot(b *testing.B) {
	for _, services := range upTo(100, 100_000) {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			m := valueMesh{services: services, namespaces: 10}
			builder := snapshot.NewBuilder(nil)
			snapshottest.Apply(builder, m.all())
			for _, e := range edits() {
				b.Run(e.kind, func(b *testing.B) {
					b.ReportAllocs()
					cpu := cpuTime()
					n := 0
					for ; b.Loop(); n++ {
						snapshottest.Apply(builder, e.make(m, n))
					}
					b.ReportMetric(float64(cpuTime()-cpu)/float64(n), "cpu-ns/op")
				})
			}
		})
	}
}

// BenchmarkEdit is a change of one object, by kind, until the ResourceSets of ten classes are there, each of the
// default scope of another namespace.
func BenchmarkEdit(b *testing.B) {
	for _, services := range upTo(100, 100_000) {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			p := planValues(valueMesh{services: services, namespaces: 10})
			defer p.stop()
			p.attach(b, 10)
			for _, e := range edits() {
				b.Run(e.kind, func(b *testing.B) { p.bench(b, e) })
			}
		})
	}
}

// bench repeats an edit. Its CPU is that of the whole process, garbage collection included: where other work shares the
// machine, times mean little. It returns the CPU of the edit in the middle, which no collection shares as long as there
// are more edits than collections.
func (p *valuePlanner) bench(b *testing.B, e edit) (middle time.Duration) {
	p.apply(b, e)
	p.moved = 0
	start := cpuTime()
	var each []time.Duration
	b.ReportAllocs()
	for before := start; b.Loop(); {
		p.apply(b, e)
		now := cpuTime()
		each = append(each, now-before)
		before = now
	}
	ops := float64(len(each))
	b.ReportMetric(float64(cpuTime()-start)/ops, "cpu-ns/op")
	b.ReportMetric(float64(p.moved)/ops, "classes/op")
	slices.Sort(each)
	return each[len(each)/2]
}

// BenchmarkScopes is a change of one object among many Sidecar objects, each of which imports its own namespace,
// istio-system and three hosts: of what none of them imports, with and without clients, and of what all import.
func BenchmarkScopes(b *testing.B) {
	unseen, seen := routeEdit("unseen", 0), routeEdit("seen", 5)
	for _, sidecars := range upTo(1, 10_000) {
		b.Run(fmt.Sprintf("sidecars=%d", sidecars), func(b *testing.B) {
			p := planValues(valueMesh{services: 2000, namespaces: 100, sidecars: sidecars})
			defer p.stop()
			p.attach(b, 1)
			b.Run("unconnected", func(b *testing.B) { p.bench(b, unseen) })
			p.attach(b, sidecars)
			for _, e := range append([]edit{unseen, seen}, edits()[1:]...) {
				b.Run(e.kind, func(b *testing.B) { p.bench(b, e) })
			}
		})
	}
}

// BenchmarkScopeMemory is what a connected Scope takes: 1,000 of them, beyond the mesh itself; and the time until it
// has its ResourceSet.
func BenchmarkScopeMemory(b *testing.B) {
	for _, services := range upTo(1000, 100_000) {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			const scopes = 1000
			var bytes float64
			for b.Loop() {
				b.StopTimer()
				p := planValues(valueMesh{services: services, namespaces: services / 20, sidecars: scopes})
				p.attach(b, 1)
				before := liveHeap()
				b.StartTimer()
				p.attach(b, scopes)
				b.StopTimer()
				bytes += float64(liveHeap()-before) / scopes
				p.stop()
				runtime.KeepAlive(p)
				b.StartTimer()
			}
			b.ReportMetric(bytes/float64(b.N), "B/scope")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/scopes, "ns/scope")
		})
	}
}

func liveHeap() uint64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkFirst is the first plan of all in a mesh, when everything is generated: of a proxy that sees everything, and
// of one whose Sidecar imports some thirty services.
func BenchmarkFirst(b *testing.B) {
	for _, services := range upTo(100, 100_000) {
		for _, sidecars := range []int{0, 1} {
			name := map[int]string{0: "wide", 1: "scoped"}[sidecars]
			b.Run(fmt.Sprintf("%s/services=%d", name, services), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					p := planValues(valueMesh{services: services, namespaces: max(10, services/20), sidecars: sidecars})
					b.StartTimer()
					p.attach(b, 1)
					b.StopTimer()
					p.stop()
					b.StartTimer()
				}
			})
		}
	}
}
