package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pilotd/pilotd/bench/mesh"
	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/gen/plan"
	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// planned is a mesh with a planner and nobody who sends anything. It implements classes.Sink.
type planned struct {
	mesh    *mesh.Mesh
	store   *ingest.Store
	builder *snapshot.Builder
	planner *plan.Planner
	stop    func()
	last    *classes.ResourceSet
	moved   int // ResourceSets that changed
}

func newPlanned(m *mesh.Mesh) *planned {
	p := newPlannedOf(m.Events())
	p.mesh = m
	return p
}

func newPlannedOf(objects []ingest.Event) *planned {
	p := &planned{}
	p.planner = plan.NewPlanner(plan.NewTables(), p, plan.Options{Now: time.Now, After: time.After})
	p.builder = snapshot.NewBuilder(p.planner)
	p.store = ingest.NewStore(p.builder, ingest.Settings{}, mesh.Source)
	p.store.Apply(objects)
	p.store.Synced(mesh.Source)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { p.planner.Run(ctx); close(done) }()
	p.stop = func() { cancel(); <-done }
	return p
}

// attach plans for the sidecar of workload i; beyond the mesh they repeat.
func (p *planned) attach(b testing.TB, i int) {
	client, err := proxy.Accept(p.mesh.Node(i%p.mesh.Workloads()), proxy.Peer{})
	must(b, err)
	p.planner.Attach(uint64(i+1), client)
}

func (p *planned) settle(b testing.TB) { must(b, p.planner.Barrier(b.Context())) }

// Assigned implements classes.Sink.
func (p *planned) Assigned(_ uint64, _ *classes.Class, w *classes.ResourceSet) { p.last = w }

// Advanced implements classes.Sink.
func (p *planned) Advanced(sets map[*classes.Class]*classes.ResourceSet, _ classes.Endpoints) {
	p.moved += len(sets)
}

// EndpointsChanged implements classes.Sink.
func (p *planned) EndpointsChanged(*snapshot.EndpointTable, []value.ServiceKey) {}

// BenchmarkPlan is what it takes to know what a sidecar is to have: the first of all, when everything is generated; the
// first of its namespace; the first of its service; and one more of the same.
func BenchmarkPlan(b *testing.B) {
	for _, services := range upTo(100, 10_000) {
		m := mesh.New(mesh.Usual(services))
		for _, c := range []struct {
			name    string
			before  []int // workloads that are planned for already
			measure int
		}{
			{"first", nil, 0},
			{"namespace", []int{1}, 0},
			{"service", []int{m.Namespaces}, 0},
			{"same", []int{m.Services}, 0},
		} {
			b.Run(fmt.Sprintf("%s/services=%d", c.name, services), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					p := newPlanned(m)
					for _, i := range c.before {
						p.attach(b, i)
					}
					p.settle(b)
					b.StartTimer()
					p.attach(b, c.measure)
					p.settle(b)
					b.StopTimer()
					p.stop()
					b.StartTimer()
				}
			})
		}
	}
}

// BenchmarkEndpointsFirst joins all endpoint assignments of a sidecar for the first time.
func BenchmarkEndpointsFirst(b *testing.B) {
	for _, services := range upTo(100, 10_000) {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			m := mesh.New(mesh.Usual(services))
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				p := newPlanned(m)
				p.attach(b, 0)
				p.settle(b)
				t := p.builder.View().Endpoints
				b.StartTimer()
				for _, a := range p.last.Assignments.All() {
					a.Entry(t)
				}
				b.StopTimer()
				p.stop()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkRoutePlan is a VirtualService edit, from Store.Apply until the new ResourceSets of all classes are there:
// every sidecar is of a class of its own.
func BenchmarkRoutePlan(b *testing.B) {
	for _, services := range upTo(100, 10_000) {
		for _, sidecars := range []int{10, 1000} {
			b.Run(fmt.Sprintf("services=%d/sidecars=%d", services, sidecars), func(b *testing.B) {
				m := mesh.New(mesh.Usual(services))
				p := newPlanned(m)
				defer p.stop()
				for i := range sidecars {
					p.attach(b, i)
				}
				p.settle(b)
				p.moved = 0
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					p.store.Apply(m.RouteChange(n))
					p.settle(b)
					n++
				}
				b.ReportMetric(float64(p.moved)/float64(n), "classes/op")
			})
		}
	}
}
