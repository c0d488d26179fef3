package snapshot

import (
	"sync"
	"sync/atomic"

	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// View is one Snapshot and one EndpointTable that belong together.
type View struct {
	Snapshot  *Snapshot
	Endpoints *EndpointTable
}

// Listener is told of each new View. Publish is called in the order of Views and must not block: it merges the Delta
// into a slot.
type Listener interface {
	Publish(v *View, d *Delta)
}

// Builder makes the next View of each Batch by path copying, and publishes it.
type Builder struct {
	view atomic.Pointer[View]

	// mu orders publications. It is held only while maps are path-copied and the listener merges a Delta.
	mu sync.Mutex
	// Guarded by mu.
	listener Listener
}

// NewBuilder makes a Builder whose first View is empty; it publishes to l.
func NewBuilder(l Listener) *Builder {
	b := &Builder{listener: l}
	b.view.Store(&View{Snapshot: &Snapshot{}, Endpoints: &EndpointTable{}})
	return b
}

// View is the newest View. Before the first Batch with a Mesh it is empty and has none.
func (b *Builder) View() *View { return b.view.Load() }

// Apply publishes the View with the changes of batch, which the caller must not write again. A batch of endpoints alone
// keeps the Snapshot.
//
// The new View is stored before the listener learns of it, so whoever is told of a Delta reads a View that holds it, or
// a later one.
func (b *Builder) Apply(batch *Batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	prev := b.view.Load()
	next := &View{Snapshot: prev.Snapshot, Endpoints: prev.Endpoints.with(batch)}
	if !batch.EndpointsOnly() {
		next.Snapshot = prev.Snapshot.with(batch)
	}
	b.view.Store(next)
	if d := batch.delta(); !d.Empty() && b.listener != nil {
		b.listener.Publish(next, d)
	}
}

// with is the next Snapshot.
func (s *Snapshot) with(b *Batch) *Snapshot {
	next := *s
	next.Revision++
	if b.Mesh != nil {
		next.Mesh = b.Mesh
	}
	next.namespaces = put(s.namespaces, b.Namespaces, func(n string) string { return n })
	next.projections = put(s.projections, b.Projections, value.ServiceKey.String)
	object := func(k value.ObjectKey) string { return key(k.Namespace, k.Name) }
	next.gateways = put(s.gateways, b.Gateways, object)
	next.sidecars = put(s.sidecars, b.Sidecars, object)
	next.services = s.services.with(b.Services)
	next.ports = s.ports.with(b, s, &next)
	next.virtual = s.virtual.with(b.VirtualServices)
	next.patterns = s.patterns.with(b, s)
	next.rules = s.rules.with(b.DestinationRules)
	next.selectors = s.selectors.with(b, s)
	next.selected = s.selected.with(b, s)
	next.locality.count(b, s)
	return &next
}

// put is m with the values of changes; nil deletes.
func put[K comparable, V any](m chunked.Map[*V], changes map[K]*V, name func(K) string) chunked.Map[*V] {
	if len(changes) == 0 {
		return m
	}
	edits := make(editList[*V], 0, len(changes))
	for k, v := range changes {
		edits.set(name(k), v, v == nil)
	}
	return m.Apply(edits)
}

// with is the next EndpointTable; t itself if the batch has nothing for it.
func (t *EndpointTable) with(b *Batch) *EndpointTable {
	if len(b.Endpoints)+len(b.Workloads) == 0 {
		return t
	}
	sets := make(map[value.ServiceKey]*EndpointSet, len(b.Endpoints))
	for k, eps := range b.Endpoints {
		sets[k] = nil
		if len(eps) > 0 {
			sets[k] = &EndpointSet{Endpoints: eps}
		}
	}
	return &EndpointTable{
		Revision:  t.Revision + 1,
		sets:      put(t.sets, sets, value.ServiceKey.String),
		workloads: put(t.workloads, b.Workloads, func(a string) string { return a }),
	}
}
