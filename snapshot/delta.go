package snapshot

import (
	"iter"
	"maps"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Delta is what differs between two Views, each change with the value before and the value after. It is the one form in
// which a change travels: the Store makes one of each flush, the Builder makes the next View of it, and the planner
// reads it. Deltas of consecutive Views merge into the Delta from the first to the last.
type Delta struct {
	// All says that anything may differ, because the mesh configuration does; the changes are still complete.
	All bool
	// Mesh is the mesh configuration after the change; nil where it is the same as before.
	Mesh *value.Mesh
	// Objects are the configuration objects, namespaces included. Services are not among them.
	Objects Changes[value.ObjectKey, value.Value]
	// Services are the services; Projections are what a Snapshot knows of their endpoints.
	Services    Changes[value.ServiceKey, *value.Service]
	Projections Changes[value.ServiceKey, *value.Projection]
	// Endpoints and Workloads are the endpoint lane: a Delta with nothing but these changes no Snapshot. A Delta that
	// changes a Projection has the Endpoints too. A workload is found by each of its addresses.
	Endpoints Changes[value.ServiceKey, *EndpointSet]
	Workloads Changes[string, *value.Workload]
}

// Change is one value before and after a change. The zero value of V stands for none.
type Change[V any] struct{ Old, New V }

// Changes are changed values by key. A change whose old and new value are the same is not in it.
type Changes[K, V comparable] map[K]Change[V]

// Add notes that the value of k was old and is now next. Of several changes of one key the first old value and the last
// new one count, and where these are the same the change vanishes.
func (c *Changes[K, V]) Add(k K, old, next V) {
	if first, ok := (*c)[k]; ok {
		old = first.Old
	}
	if old == next {
		delete(*c, k)
		return
	}
	if *c == nil {
		*c = Changes[K, V]{}
	}
	(*c)[k] = Change[V]{Old: old, New: next}
}

// Merge adds the changes of o, which came later. It keeps no reference to o.
func (c *Changes[K, V]) Merge(o Changes[K, V]) {
	if len(*c) == 0 && len(o) > 0 {
		*c = maps.Clone(o)
		return
	}
	for k, change := range o {
		c.Add(k, change.Old, change.New)
	}
}

// Of yields the changes of those objects whose values are of type V, with nil for a value that is not there.
func Of[V value.Value](changes Changes[value.ObjectKey, value.Value]) iter.Seq2[value.ObjectKey, Change[V]] {
	return func(yield func(value.ObjectKey, Change[V]) bool) {
		for k, c := range changes {
			old, was := c.Old.(V)
			next, is := c.New.(V)
			if (was || is) && !yield(k, Change[V]{Old: old, New: next}) {
				return
			}
		}
	}
}

// Empty reports whether nothing differs.
func (d *Delta) Empty() bool { return d.EndpointsOnly() && len(d.Endpoints)+len(d.Workloads) == 0 }

// EndpointsOnly reports whether nothing but endpoints and workloads differs.
func (d *Delta) EndpointsOnly() bool {
	return !d.All && d.Mesh == nil && len(d.Objects)+len(d.Services)+len(d.Projections) == 0
}

// ServiceKeys yields each service once of which the Service itself or its Projection differs.
func (d *Delta) ServiceKeys() iter.Seq[value.ServiceKey] {
	return func(yield func(value.ServiceKey) bool) {
		for k := range d.Services {
			if !yield(k) {
				return
			}
		}
		for k := range d.Projections {
			if _, both := d.Services[k]; !both && !yield(k) {
				return
			}
		}
	}
}

// Merge adds o, which came after d. Merging is associative.
func (d *Delta) Merge(o *Delta) {
	d.All = d.All || o.All
	if o.Mesh != nil {
		d.Mesh = o.Mesh
	}
	d.Objects.Merge(o.Objects)
	d.Services.Merge(o.Services)
	d.Projections.Merge(o.Projections)
	d.Endpoints.Merge(o.Endpoints)
	d.Workloads.Merge(o.Workloads)
}
