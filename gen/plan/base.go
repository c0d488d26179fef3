package plan

import (
	"iter"
	"slices"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/gen/plan/gateway"
	"github.com/pilotd/pilotd/gen/plan/inbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/gen/plan/section"
	"github.com/pilotd/pilotd/gen/plan/source"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// base is all that proxies with equal Facts share: everything but what their own workload adds. Immutable; advance
// makes the next one.
type base struct {
	scope *scope.Scope
	snap  *snapshot.Snapshot // what it was computed from

	clusters, listeners, routes classes.Section
	assignments                 chunked.Map[*classes.Assignment]
	groups                      chunked.Map[*classes.AssignmentGroup]
	// hosts are the virtual hosts of each shared HTTP port.
	hosts portList
	// router is what the listeners and routes of a router are made of; nil for others.
	router *gateway.Router
	// parts are what each of the Tables' sources has made.
	parts []source.Part
}

// newBase computes a base from nothing: everything is touched.
func (t *Tables) newBase(n *snapshot.Snapshot, f scope.Facts, labels value.Labels) *base {
	return t.baseOf(scope.NewMemo(n), f, labels)
}

// baseOf works like newBase, with what is known of the Snapshot.
func (t *Tables) baseOf(k *scope.Memo, f scope.Facts, labels value.Labels) *base {
	return t.baseFor(k, scope.New(f, labels, t.trims))
}

// baseFor computes the base of a scope from nothing.
func (t *Tables) baseFor(k *scope.Memo, sc *scope.Scope) *base {
	empty := &base{scope: sc.Unwatched(), snap: &snapshot.Snapshot{Mesh: k.Snapshot.Mesh}}
	return t.move(&move{from: empty, to: sc, n: k.Snapshot, affected: scope.Everything(k, sc)})
}

// advance returns b brought to n. affected names what may differ between the two Snapshots; b itself if nothing does.
func (t *Tables) advance(b *base, n *snapshot.Snapshot, affected *scope.Affected) *base {
	return t.move(&move{from: b, to: b.scope, n: n, affected: affected})
}

// move is the computation of a base out of another one: what the Scope to sees in the Snapshot n, where the units that
// affected names may differ from what from has. Units are made for to; where from has resources that to has not, they
// go.
type move struct {
	from     *base
	to       *scope.Scope
	n        *snapshot.Snapshot
	affected *scope.Affected
	edits    edits
}

func (t *Tables) move(m *move) *base {
	b := m.from
	if m.to.Parts != nil {
		return t.advanceParts(b, m.n, m.affected)
	}
	next := *b
	next.scope, next.snap, next.parts = m.to.Unwatched(), m.n, t.moveParts(m)
	t.moveServices(m)
	if m.to.Traits.Type == value.Router {
		next.router = t.gateways.Advance(b.router,
			gateway.Change{Scope: b.scope, Old: b.snap, Now: m.n, Affected: m.affected}, &t.Tables)
	} else {
		t.moveSniffed(m)
		next.hosts = t.moveRoutes(m)
		t.moveListeners(m)
		t.moveDynamic(m)
	}
	if m.affected.All {
		t.moveStatic(m)
	}
	e := &m.edits
	next.clusters = share(t.sections.clusters, e.clusters, b.clusters)
	next.listeners = share(t.sections.listeners, e.listeners, b.listeners)
	next.routes = share(t.sections.routes, e.routes, b.routes)
	next.assignments = share(t.sections.assignments, e.assignments, b.assignments)
	next.groups = e.groups.Apply(b.groups)
	if next.router != nil {
		next.listeners, next.routes = next.router.Listeners(), next.router.Routes()
	}
	return &next
}

// share returns m with edits, in chunks that others have too where they are equal.
func share[V comparable](pool *chunked.Pool[V], e chunked.Edits[V], m chunked.Map[V]) chunked.Map[V] {
	if len(e) == 0 {
		return m
	}
	return pool.Share(e.Apply(m))
}

// moveParts returns what the sources make.
func (t *Tables) moveParts(m *move) []source.Part {
	if m.from.parts != nil && t.sources.resting() {
		return m.from.parts
	}
	var hosts iter.Seq[string]
	if !m.affected.All {
		hosts = m.affected.EachHost(m.from.snap, m.n)
	}
	return t.sources.advance(m.from.parts, source.At{Scope: m.from.scope, Snapshot: m.from.snap},
		source.At{Scope: m.to, Snapshot: m.n}, hosts)
}

// moveStatic replaces what every proxy of the scope has whatever services there are.
func (t *Tables) moveStatic(m *move) {
	for _, c := range t.StaticClusters(m.n, m.to) {
		section.Put(&m.edits.clusters, c)
	}
	if m.to.Traits.Type == value.SidecarProxy {
		t.moveVirtual(m)
	}
}

// moveVirtual replaces the listener of all connections that are intercepted.
func (t *Tables) moveVirtual(m *move) {
	m.to.Begin(scope.Unit{Kind: scope.OfVirtual})
	for _, l := range t.StaticListeners(m.n, m.to) {
		section.Put(&m.edits.listeners, l)
	}
}

// moveServices replaces the clusters, assignments and address listeners of the touched services.
func (t *Tables) moveServices(m *move) {
	for host := range m.affected.EachHost(m.from.snap, m.n) {
		if old := m.from.scope.Service(m.from.snap, host); old != nil {
			t.dropService(m.from, old, &m.edits)
		}
		m.to.Begin(scope.Unit{Kind: scope.OfServices, Host: host})
		if svc := m.to.Service(m.n, host); svc != nil {
			t.putService(m.to, m.n, svc, &m.edits)
		}
	}
}

func (t *Tables) dropService(b *base, svc *value.Service, e *edits) {
	clusters, assignments := t.ClustersOf(b.snap, b.scope, svc)
	for _, c := range clusters {
		e.clusters.Drop(c.Name())
	}
	for _, a := range assignments {
		e.assignments.Drop(a.Name)
	}
	e.groups.Drop(svc.ServiceKey.String())
	if b.scope.Traits.Type == value.Router {
		return
	}
	for _, l := range t.AddressListeners(b.snap, b.scope, svc) {
		e.listeners.Drop(l.Name())
	}
}

func (t *Tables) putService(sc *scope.Scope, n *snapshot.Snapshot, svc *value.Service, e *edits) {
	clusters, assignments := t.ClustersOf(n, sc, svc)
	for _, c := range clusters {
		section.Put(&e.clusters, c)
	}
	for _, a := range assignments {
		e.assignments.Put(a.Name, a)
	}
	if len(assignments) > 0 {
		e.groups.Put(svc.ServiceKey.String(), &classes.AssignmentGroup{Members: assignments})
	}
	if sc.Traits.Type == value.Router {
		return
	}
	for _, l := range t.AddressListeners(n, sc, svc) {
		section.Put(&e.listeners, l)
	}
}

// moveListeners replaces the wildcard listeners of the touched ports.
func (t *Tables) moveListeners(m *move) {
	for port := range m.affected.EachPort(m.n) {
		for _, l := range t.WildcardListeners(m.from.snap, m.from.scope, port) {
			m.edits.listeners.Drop(l.Name())
		}
		m.to.Begin(scope.Unit{Kind: scope.OfListeners, Port: port})
		for _, l := range t.WildcardListeners(m.n, m.to, port) {
			section.Put(&m.edits.listeners, l)
		}
	}
}

// set returns what the proxies of a class should have. prev, which may be nil, is the ResourceSet that the class had of
// the base old with the same own part: what the two bases share is taken from it.
func (b *base) set(overlay *inbound.Overlay, old *base, prev *classes.ResourceSet) *classes.ResourceSet {
	own := func(t xdstype.Type, now, before classes.Section) classes.Section {
		if prev != nil && now.Same(before) {
			return prev.Sections.Of(t)
		}
		return now.Apply(overlay.Edits(t))
	}
	if old == nil {
		old = &base{}
	}
	w := &standardSet{}
	w.Revision, w.Assignments, w.Groups = b.snap.Revision, b.assignments, b.groups
	sections := classes.Sections(w.sections[:])
	sections[xdstype.Cluster] = own(xdstype.Cluster, b.clusters, old.clusters)
	sections[xdstype.Listener] = own(xdstype.Listener, b.listeners, old.listeners)
	sections[xdstype.Route] = b.routes
	for _, p := range b.parts {
		if p != nil {
			t, s := p.Section()
			sections[t] = s
		}
	}
	w.Sections = sections
	return &w.ResourceSet
}

// standardSet is a ResourceSet with its Sections beside it: there is one for each class.
type standardSet struct {
	classes.ResourceSet
	sections [xdstype.NumStandard]classes.Section
}

// overlayOf makes what a class on a base has of its own. What is as in old, which may be nil, is taken from there.
func (t *Tables) overlayOf(b *base, own *inbound.Facts, old *inbound.Overlay) *inbound.Overlay {
	sees := func(host string) bool { return b.scope.Service(b.snap, host) != nil }
	return t.inbound.Overlay(b.snap, own, sees, old)
}

// sameSets reports whether two ResourceSets hold the same resources, pointer by pointer.
func sameSets(w, o *classes.ResourceSet) bool {
	return w != nil && o != nil && w.Sections.Same(o.Sections) && w.Assignments.Same(o.Assignments)
}

// sameSets reports whether two bases hold the same resources, pointer by pointer.
func (b *base) equal(o *base) bool {
	return b.clusters.Same(o.clusters) && b.listeners.Same(o.listeners) && b.routes.Same(o.routes) &&
		b.assignments.Same(o.assignments) && slices.Equal(b.parts, o.parts)
}
