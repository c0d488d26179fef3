package mesh

import (
	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/loadtest/mesh"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Source is the name of the source of all events.
const Source = "mesh"

// Shape is the size and kind of a mesh.
type Shape = mesh.Shape

// Usual returns the shape that docs/benchmarks.md measures: services × 2 pods over ten namespaces.
func Usual(services int) Shape { return mesh.Usual(services) }

// Mesh makes the events of a Shape. Immutable.
type Mesh struct{ *mesh.Mesh }

// New returns the mesh of a shape.
func New(s Shape) *Mesh { return &Mesh{mesh.New(s)} }

// Events returns all objects of the mesh.
func (m *Mesh) Events() []ingest.Event {
	out := []ingest.Event{{Source: Source, Key: value.ObjectKey{Kind: value.KindMeshConfig, Namespace: "istio-system",
		Name: "istio"}, Object: "rootNamespace: istio-system\n"}}
	for o := range m.Objects() {
		out = append(out, event(o))
	}
	return out
}

// EndpointChange returns the n-th change of an endpoint: a pod of the first service becomes unready, or ready again.
func (m *Mesh) EndpointChange(n int) []ingest.Event {
	return []ingest.Event{event(m.Slice(0, n%2 == 1))}
}

// RouteChange returns the n-th edit of the first service's VirtualService: its weights.
func (m *Mesh) RouteChange(n int) []ingest.Event { return []ingest.Event{event(m.Route(0, n+1))} }

// event returns the event with which a source would send an object.
func event(o mesh.Object) ingest.Event {
	kind := o.GetObjectKind().GroupVersionKind().GroupKind()
	key := value.ObjectKey{Kind: value.KindOf(kind.Group, kind.Kind), Namespace: o.GetNamespace(), Name: o.GetName()}
	return ingest.Event{Source: Source, Key: key, Object: o}
}
