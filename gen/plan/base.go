package plan

import (
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// base is all that proxies with equal Facts share: everything but what their own workload adds. Immutable; advance
// makes the next one.
type base struct {
	scope *Scope
	snap  *snapshot.Snapshot // what it was computed from

	clusters, listeners, routes Section
	assignments                 chunked.Map[*Assignment]
	groups                      chunked.Map[*assignmentGroup]
	// hosts are the virtual hosts of each shared HTTP port, by port.
	hosts chunked.Map[*portHosts]
	// router is what the listeners and routes of a router are made of; nil for others.
	router *router
}

// newBase computes a base from nothing: everything is touched.
func (t *Tables) newBase(n *snapshot.Snapshot, f Facts, labels value.Labels) *base {
	return t.baseOf(newKnown(n), f, labels)
}

// baseOf is newBase with what is known of the Snapshot.
func (t *Tables) baseOf(k *known, f Facts, labels value.Labels) *base {
	empty := &base{scope: newScope(f, labels, t.trims), snap: &snapshot.Snapshot{Mesh: k.n.Mesh}}
	return t.advance(empty, k.n, everything(k, empty.scope))
}

// advance is b brought to n. touch names what may differ between the two Snapshots; b itself if nothing does.
func (t *Tables) advance(b *base, n *snapshot.Snapshot, touch *touched) *base {
	if b.scope.parts != nil {
		return t.advanceParts(b, n, touch)
	}
	next := *b
	next.snap = n
	e := &edits{}
	switch b.scope.Traits.Type {
	case value.Router:
		t.advanceServices(b, n, touch, e)
		next.router = t.advanceGateways(b, n, touch)
	default:
		t.advanceServices(b, n, touch, e)
		t.advanceSniffed(b, n, touch, e)
		next.hosts = t.advanceRoutes(b, n, touch, e)
		t.advanceListeners(b, n, touch, e)
		t.advanceDynamic(b, n, touch, e)
	}
	if touch.all {
		t.advanceStatic(b, n, e)
	}
	next.clusters = t.sections.clusters.Share(e.clusters.apply(b.clusters))
	next.listeners = t.sections.listeners.Share(e.listeners.apply(b.listeners))
	next.routes = t.sections.routes.Share(e.routes.apply(b.routes))
	next.assignments = t.sections.assignments.Share(e.assignments.apply(b.assignments))
	next.groups = e.groups.apply(b.groups)
	if next.router != nil {
		next.listeners, next.routes = next.router.made.listeners, next.router.made.routes
	}
	return &next
}

// advanceStatic replaces what every proxy of the scope has whatever services there are.
func (t *Tables) advanceStatic(b *base, n *snapshot.Snapshot, e *edits) {
	for _, c := range t.staticClusters(n, b.scope) {
		putEntry(&e.clusters, c)
	}
	if b.scope.Traits.Type == value.SidecarProxy {
		for _, l := range t.staticListeners(n, b.scope) {
			putEntry(&e.listeners, l)
		}
	}
}

// advanceServices replaces the clusters, assignments and address listeners of the touched services.
func (t *Tables) advanceServices(b *base, n *snapshot.Snapshot, touch *touched, e *edits) {
	for host := range touch.eachHost(b.snap, n) {
		if old := b.scope.Service(b.snap, host); old != nil {
			t.dropService(b, old, e)
		}
		if svc := b.scope.Service(n, host); svc != nil {
			t.putService(b.scope, n, svc, e)
		}
	}
}

func (t *Tables) dropService(b *base, svc *value.Service, e *edits) {
	clusters, assignments := t.clustersOf(b.snap, b.scope, svc)
	for _, c := range clusters {
		e.clusters.drop(c.Name())
	}
	for _, a := range assignments {
		e.assignments.drop(a.Name)
	}
	e.groups.drop(svc.ServiceKey.String())
	if b.scope.Traits.Type == value.Router {
		return
	}
	for _, l := range t.addressListeners(b.snap, b.scope, svc) {
		e.listeners.drop(l.Name())
	}
}

func (t *Tables) putService(sc *Scope, n *snapshot.Snapshot, svc *value.Service, e *edits) {
	clusters, assignments := t.clustersOf(n, sc, svc)
	for _, c := range clusters {
		putEntry(&e.clusters, c)
	}
	for _, a := range assignments {
		e.assignments.put(a.Name, a)
	}
	if len(assignments) > 0 {
		e.groups.put(svc.ServiceKey.String(), &assignmentGroup{assignments})
	}
	if sc.Traits.Type == value.Router {
		return
	}
	for _, l := range t.addressListeners(n, sc, svc) {
		putEntry(&e.listeners, l)
	}
}

// advanceListeners replaces the wildcard listeners of the touched ports.
func (t *Tables) advanceListeners(b *base, n *snapshot.Snapshot, touch *touched, e *edits) {
	for port := range touch.eachPort(n) {
		for _, l := range t.wildcardListeners(b.snap, b.scope, port) {
			e.listeners.drop(l.Name())
		}
		for _, l := range t.wildcardListeners(n, b.scope, port) {
			putEntry(&e.listeners, l)
		}
	}
}

// set is what the proxies of a class should have. prev, which may be nil, is the ResourceSet that the class had of the
// base old with the same own part: what the two bases share is taken from it.
func (b *base) set(in *inbound, old *base, prev *ResourceSet) *ResourceSet {
	own := func(t xdstype.Type, now, before Section) Section {
		if prev != nil && now.Same(before) {
			return prev.Sections.Of(t)
		}
		return now.Apply(in.edits(t.URL()))
	}
	if old == nil {
		old = &base{}
	}
	return &ResourceSet{Revision: b.snap.Revision, Assignments: b.assignments, groups: b.groups, Sections: Sections{
		xdstype.Cluster:  own(xdstype.Cluster, b.clusters, old.clusters),
		xdstype.Listener: own(xdstype.Listener, b.listeners, old.listeners),
		xdstype.Route:    b.routes,
	}}
}

// equal reports whether two ResourceSets hold the same resources, pointer by pointer.
func (w *ResourceSet) equal(o *ResourceSet) bool {
	return w != nil && o != nil && w.Sections.Same(o.Sections) && w.Assignments.Same(o.Assignments)
}

// equal reports whether two bases hold the same resources, pointer by pointer.
func (b *base) equal(o *base) bool {
	return b.clusters.Same(o.clusters) && b.listeners.Same(o.listeners) && b.routes.Same(o.routes) &&
		b.assignments.Same(o.assignments)
}
