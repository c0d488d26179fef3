package snapshot

import (
	"maps"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Delta names what differs between two Views. Deltas of consecutive Views merge into the Delta from the first to the
// last; merging is associative, commutative and idempotent.
type Delta struct {
	// All: anything may differ; the sets say nothing.
	All bool
	// Objects are the configuration objects that were added, changed or removed. Services are not among them.
	Objects map[value.ObjectKey]struct{}
	// Services are those of which the Service itself or its Projection differs.
	Services map[value.ServiceKey]struct{}
	// Endpoints are the services whose endpoints differ.
	Endpoints map[value.ServiceKey]struct{}
	// Workloads are the addresses at which another workload, or another version of it, is found, or at which a service
	// has its endpoint no more, or has one only now.
	Workloads map[string]struct{}
}

// Empty reports whether nothing differs.
func (d *Delta) Empty() bool {
	return !d.All && len(d.Objects)+len(d.Services)+len(d.Endpoints)+len(d.Workloads) == 0
}

// Merge adds o to d.
func (d *Delta) Merge(o *Delta) {
	d.All = d.All || o.All
	d.Objects = union(d.Objects, o.Objects)
	d.Services = union(d.Services, o.Services)
	d.Endpoints = union(d.Endpoints, o.Endpoints)
	d.Workloads = union(d.Workloads, o.Workloads)
}

func union[K comparable](a, b map[K]struct{}) map[K]struct{} {
	if a == nil {
		return maps.Clone(b)
	}
	maps.Copy(a, b)
	return a
}

func keys[K comparable, V any](m map[K]V) map[K]struct{} {
	out := make(map[K]struct{}, len(m))
	for k := range m {
		out[k] = struct{}{}
	}
	return out
}

// delta is what the batch changes.
func (b *Batch) delta() *Delta {
	d := &Delta{All: b.Mesh != nil, Services: keys(b.Services), Endpoints: keys(b.Endpoints),
		Workloads: keys(b.Workloads), Objects: map[value.ObjectKey]struct{}{}}
	for n := range b.Namespaces {
		d.Objects[value.ObjectKey{Kind: value.KindNamespace, Name: n}] = struct{}{}
	}
	maps.Copy(d.Services, keys(b.Projections))
	maps.Copy(d.Objects, keys(b.VirtualServices))
	maps.Copy(d.Objects, keys(b.DestinationRules))
	maps.Copy(d.Objects, keys(b.Gateways))
	maps.Copy(d.Objects, keys(b.Sidecars))
	return d
}
