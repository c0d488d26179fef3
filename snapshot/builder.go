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

// Builder makes the next View of each Delta by path copying, and publishes it.
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

// View returns the newest View. Before the first Delta with a Mesh it is empty and has none.
func (b *Builder) View() *View { return b.view.Load() }

// Apply publishes the View with the changes of d, whose old values are those of the View before. The caller must not
// write d again. A Delta of endpoints alone keeps the Snapshot.
//
// The new View is stored before the listener learns of it, so whoever is told of a Delta reads a View that holds it, or
// a later one.
func (b *Builder) Apply(d *Delta) {
	b.mu.Lock()
	defer b.mu.Unlock()
	prev := b.view.Load()
	next := &View{Snapshot: prev.Snapshot, Endpoints: prev.Endpoints.with(d)}
	if !d.EndpointsOnly() {
		next.Snapshot = prev.Snapshot.with(d)
	}
	b.view.Store(next)
	if !d.Empty() && b.listener != nil {
		b.listener.Publish(next, d)
	}
}

// with returns the next Snapshot.
func (s *Snapshot) with(d *Delta) *Snapshot {
	next := *s
	next.Revision++
	if d.Mesh != nil {
		next.Mesh = d.Mesh
	}
	next.objects = s.objects.with(d.Objects)
	next.projections = put(s.projections, d.Projections, value.ServiceKey.String)
	next.services = s.services.with(d.Services)
	next.ports = s.ports.with(d, s, &next)
	next.virtual = s.virtual.with(d)
	next.patterns = s.patterns.with(d)
	next.rules = s.rules.with(d)
	next.selectors = s.selectors.with(d)
	next.selected = s.selected.with(d)
	next.locality.count(d)
	next.peers = s.peers.with(d, &next)
	return &next
}

// put returns m with the new values of changes.
func put[K, V comparable](m chunked.Map[V], changes Changes[K, V], name func(K) string) chunked.Map[V] {
	if len(changes) == 0 {
		return m
	}
	var none V
	edits := make(editList[V], 0, len(changes))
	for k, c := range changes {
		edits.set(name(k), c.New, c.New == none)
	}
	return m.Apply(edits)
}

// with returns the next EndpointTable; t itself if the Delta has nothing for it.
func (t *EndpointTable) with(d *Delta) *EndpointTable {
	if len(d.Endpoints)+len(d.Workloads) == 0 {
		return t
	}
	return &EndpointTable{
		Revision:  t.Revision + 1,
		sets:      put(t.sets, d.Endpoints, value.ServiceKey.String),
		workloads: put(t.workloads, d.Workloads, func(a string) string { return a }),
	}
}
