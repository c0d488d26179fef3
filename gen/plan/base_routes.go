package plan

import (
	"cmp"
	"slices"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen/plan/outbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/gen/plan/section"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// moveSniffed replaces the route configurations that services have of their own.
func (t *Tables) moveSniffed(m *move) {
	for host := range m.affected.EachSniffed(m.from.scope, m.from.snap, m.n) {
		for _, r := range t.SniffedRoutes(m.from.snap, m.from.scope, host) {
			m.edits.routes.Drop(r.Name())
		}
		m.to.Begin(scope.Unit{Kind: scope.OfSniffed, Host: host})
		for _, r := range t.SniffedRoutes(m.n, m.to, host) {
			section.Put(&m.edits.routes, r)
		}
	}
}

// moveRoutes replaces the virtual hosts of the touched hosts, and the route configurations of the ports in which one
// changed.
func (t *Tables) moveRoutes(m *move) portList {
	var edits []portEdit
	for port := range m.affected.EachRoutePort(m.from.hosts.ports, m.n) {
		had := m.from.hosts.get(port)
		serves := had != nil
		if m.affected.Services() {
			m.to.Begin(scope.Unit{Kind: scope.OfServed, Port: port})
			serves = m.to.ServesHTTP(m.n, port)
		}
		switch {
		case serves:
			hosts := t.hostsOn(m.to.OnPort(m.n, port, m.affected.Memo), m.affected, had)
			if had != nil && hosts.Same(had.Hosts()) && !m.affected.All {
				continue
			}
			next := t.newPortHosts(port, t.RouteEnds(m.n, m.to, routeName(port)), hosts)
			edits = append(edits, portEdit{port, next})
			section.Put(&m.edits.routes, next.entry)
		case had != nil:
			edits = append(edits, portEdit{port: port})
			m.edits.routes.Drop(routeName(port))
			for host := range had.Hosts().All() {
				m.to.Begin(scope.Unit{Kind: scope.OfVirtualHost, Host: host, Port: port})
			}
		}
		if !serves {
			m.to.MeetAll(scope.Unit{Kind: scope.OfServed, Port: port})
		}
	}
	slices.SortFunc(edits, func(a, b portEdit) int { return cmp.Compare(a.port, b.port) })
	return m.from.hosts.edited(edits)
}

// hostsOn returns the virtual hosts of a port, which had others, or none (nil) if it was not served.
func (t *Tables) hostsOn(v scope.PortView, affected *scope.Affected, had *portHosts) outbound.VirtualHosts {
	var hosts outbound.VirtualHosts
	if had != nil {
		hosts = had.Hosts()
	} else if !affected.All {
		affected = scope.Everything(v.Memo, v.Scope)
	}
	return t.sections.hosts.Share(hosts.Apply(t.hostEdits(v, affected)))
}

// hostEdits returns what the virtual hosts of touched hosts are now on a port.
func (t *Tables) hostEdits(v scope.PortView, affected *scope.Affected) []chunked.Edit[*encodecache.Fragment] {
	list := make([]chunked.Edit[*encodecache.Fragment], 0, len(affected.Routes))
	for host := range affected.EachRouteHost(v.Snapshot, v.Port) {
		v.Scope.Begin(scope.Unit{Kind: scope.OfVirtualHost, Host: host, Port: v.Port})
		f := t.VirtualHostOf(v, host)
		list = append(list, chunked.Edit[*encodecache.Fragment]{Key: host, Value: f, Delete: f == nil})
	}
	return list
}
