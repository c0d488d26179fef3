package bench

import (
	"fmt"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/pilotd/pilotd/bench/mesh"
	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// flipped returns a slice whose last endpoint is ready or not.
func flipped(s *discoveryv1.EndpointSlice, ready bool) ingest.Event {
	s = s.DeepCopy()
	s.Endpoints[len(s.Endpoints)-1].Conditions.Ready = &ready
	return sliceEvent(s)
}

func sliceEvent(s *discoveryv1.EndpointSlice) ingest.Event {
	return ingest.Event{Source: mesh.Source, Key: value.ObjectKey{Kind: value.KindEndpointSlice, Namespace: s.Namespace,
		Name: s.Name}, Object: s}
}

// BenchmarkEndpoint is one endpoint of a service that stops being ready, or is again: from the EndpointSlice until the
// bytes of the service's assignment are there.
func BenchmarkEndpoint(b *testing.B) {
	for _, endpoints := range upTo(1, 10_000) {
		b.Run(fmt.Sprintf("endpoints=%d", endpoints), func(b *testing.B) {
			m := mesh.New(mesh.Shape{Seed: 1, Namespaces: 1, Services: 1, Pods: endpoints})
			p := newPlanned(m)
			defer p.stop()
			parts := m.Slices(0)
			p.attach(b, 0)
			p.settle(b)
			var assignment *classes.Assignment
			for name, a := range p.last.Assignments.All() {
				if name == "outbound|80||"+m.Host(0) {
					assignment = a
				}
			}
			flips := [2]ingest.Event{flipped(parts[0], false), flipped(parts[0], true)}
			bytes := 0
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				p.store.Apply([]ingest.Event{flips[n%2]})
				bytes = assignment.Entry(p.builder.View().Endpoints).Size()
				n++
			}
			b.ReportMetric(float64(bytes), "bytes")
		})
	}
}
