package plan

import (
	"cmp"
	"maps"
	"slices"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen/plan/outbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/gen/plan/section"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// advanceParts returns the base of a scope of parts at n.
func (t *Tables) advanceParts(b *base, n *snapshot.Snapshot, affected *scope.Affected) *base {
	k := affected.Memo
	if k == nil || k.Snapshot != n {
		k = scope.NewMemo(n)
	}
	m := &partsMerge{tables: t, memo: k, namespaces: map[string]string{}, groups: map[string]*classes.AssignmentGroup{}}
	static := &move{from: b, to: b.scope, n: n, affected: affected}
	t.moveStatic(static)
	m.edits = static.edits
	for _, part := range b.scope.Parts {
		m.add(part)
	}
	for service, group := range m.groups {
		m.edits.groups.Put(service, group)
	}
	return &base{
		scope: b.scope, snap: n, parts: t.moveParts(static),
		clusters:    t.sections.clusters.Share(m.edits.clusters.Apply(classes.Section{})),
		listeners:   t.sections.listeners.Share(m.edits.listeners.Apply(classes.Section{})),
		routes:      t.sections.routes.Share(m.edits.routes.Apply(classes.Section{})),
		assignments: t.sections.assignments.Share(m.edits.assignments.Apply(chunked.Map[*classes.Assignment]{})),
		groups:      m.edits.groups.Apply(chunked.Map[*classes.AssignmentGroup]{}),
	}
}

// partsMerge collects what the parts of a scope have. Of two resources of one name the first part's stays.
type partsMerge struct {
	tables     *Tables
	memo       *scope.Memo
	edits      edits
	namespaces map[string]string // the namespace of the service that a host means for the first part that knows it
	groups     map[string]*classes.AssignmentGroup
}

// keepFirst puts a resource unless it is left out, or one of its name is there.
func keepFirst(e *section.Edits, r *encodecache.Entry) {
	if _, ok := (*e)[r.Name()]; !ok && !r.Absent() {
		section.Put(e, r)
	}
}

func (m *partsMerge) add(part *scope.Scope) {
	var imported []*value.Service
	for svc := range part.Services(m.memo.Snapshot) {
		if svc = part.Listens(svc); svc == nil {
			continue
		}
		m.clusters(part, svc)
		if part.Imported(svc.Namespace, svc.Host) {
			imported = append(imported, svc)
		}
	}
	if part.Port() == 0 {
		m.listenForRest(part, imported)
	} else {
		m.listenAt(part, imported)
	}
}

// clusters adds those of a service. A host that means a service of another namespace for a part before stays that
// one's.
func (m *partsMerge) clusters(part *scope.Scope, svc *value.Service) {
	if ns, ok := m.namespaces[svc.Host]; ok && ns != svc.Namespace {
		return
	}
	m.namespaces[svc.Host] = svc.Namespace
	clusters, assignments := m.tables.ClustersOf(m.memo.Snapshot, part, svc)
	for _, c := range clusters {
		keepFirst(&m.edits.clusters, c)
	}
	for _, a := range assignments {
		if _, ok := m.edits.assignments[a.Name]; ok {
			continue
		}
		m.edits.assignments.Put(a.Name, a)
		key := svc.ServiceKey.String()
		if m.groups[key] == nil {
			m.groups[key] = &classes.AssignmentGroup{}
		}
		m.groups[key].Members = append(m.groups[key].Members, a)
	}
}

// listenAt adds the one listener of a part with a port, and its routes. What it speaks is what its port declares,
// whatever the services do.
func (m *partsMerge) listenAt(part *scope.Scope, services []*value.Service) {
	sc, number := part.Captured(), part.Port()
	binds := sc.Traits.Interception == value.NoInterception
	if len(services) == 0 || binds && !sc.Traits.MayBind(number) {
		return
	}
	v := m.tables.View(m.memo.Snapshot, sc)
	at := v.Everywhere()
	if binds {
		at = v.Loopback()
	}
	if bind := part.Bind(); bind != "" && bind != at.Bind {
		at = outbound.AddressAt(bind)
	}
	declared := part.DeclaredPort()
	if declared.Protocol == value.UDP || at.Wildcard && m.memo.Snapshot.Mesh.OwnsPort(number) {
		return
	}
	var ports []outbound.ServicePort
	for _, svc := range services {
		ports = append(ports, outbound.PortOf(svc, declared))
	}
	slices.SortStableFunc(ports, v.Before)
	if l := v.Listener(at, number, ports); l != nil {
		keepFirst(&m.edits.listeners, l)
	}
	if scope.Routable(declared.Protocol) {
		m.routes(part, number)
	}
}

// routes adds the route configuration of the listener of a part with a port.
func (m *partsMerge) routes(part *scope.Scope, number int) {
	var list []chunked.Edit[*encodecache.Fragment]
	for _, host := range slices.Sorted(maps.Keys(part.Hosts(m.memo.Snapshot))) {
		if f := m.tables.VirtualHostOf(part.OnPort(m.memo.Snapshot, number, m.memo), host); f != nil {
			list = append(list, chunked.Edit[*encodecache.Fragment]{Key: host, Value: f})
		}
	}
	keepFirst(&m.edits.routes, m.tables.RouteConfiguration(m.memo.Snapshot, part, number,
		outbound.VirtualHosts{}.Apply(list)))
}

// listenForRest adds the listeners and routes of a part without a port: those that its services have in a scope without
// parts.
func (m *partsMerge) listenForRest(part *scope.Scope, services []*value.Service) {
	n, sc := m.memo.Snapshot, part.Captured()
	ports := map[int]struct{}{}
	add := func(list []*encodecache.Entry) {
		for _, l := range list {
			keepFirst(&m.edits.listeners, l)
		}
	}
	slices.SortFunc(services, func(a, b *value.Service) int { return cmp.Compare(a.Host, b.Host) })
	for _, svc := range services {
		add(m.tables.AddressListeners(n, sc, svc))
		for _, p := range svc.Ports {
			ports[p.Number] = struct{}{}
		}
	}
	for port := range ports {
		add(m.tables.WildcardListeners(n, sc, port))
	}
	rest := &move{from: &base{scope: sc, snap: &snapshot.Snapshot{Mesh: n.Mesh}}, to: sc, n: n,
		affected: scope.Everything(m.memo, sc)}
	m.tables.moveSniffed(rest)
	m.tables.moveRoutes(rest)
	for _, r := range rest.edits.routes {
		if r != nil {
			keepFirst(&m.edits.routes, r)
		}
	}
}
