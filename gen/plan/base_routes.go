package plan

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen/plan/outbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/gen/plan/section"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// portHosts are the virtual hosts of one port's route configuration.
type portHosts struct{ hosts outbound.VirtualHosts }

// moveSniffed replaces the route configurations that services have of their own.
func (t *Tables) moveSniffed(m *move) {
	for host := range m.touch.EachSniffed(m.from.scope, m.from.snap, m.n) {
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
func (t *Tables) moveRoutes(m *move) chunked.Map[*portHosts] {
	out := m.from.hosts
	for port := range m.touch.EachRoutePort(m.from.routePorts(), m.n) {
		k := portName(port)
		had, ok := out.Get(k)
		serves := ok
		if m.touch.Services() {
			m.to.Begin(scope.Unit{Kind: scope.OfServed, Port: port})
			serves = m.to.ServesHTTP(m.n, port)
		}
		switch {
		case serves:
			next := t.hostsOn(m.to.OnPort(m.n, port, m.touch.Memo), m.touch, had)
			if ok && next.Same(had.hosts) && !m.touch.All {
				continue
			}
			out = out.Set(k, &portHosts{next})
			r := t.RouteConfiguration(m.n, m.to, port, next)
			section.Put(&m.edits.routes, r)
		case ok:
			out = out.Delete(k)
			m.edits.routes.Drop(strconv.Itoa(port))
			for host := range had.hosts.All() {
				m.to.Begin(scope.Unit{Kind: scope.OfVirtualHost, Host: host, Port: port})
			}
		}
		if !serves {
			m.to.MeetAll(scope.Unit{Kind: scope.OfServed, Port: port})
		}
	}
	return out
}

// portName is the key of a port in a Map.
func portName(port int) string { return fmt.Sprintf("%05d", port) }

// routeName is the name of the route configuration of the port with a key.
func routeName(key string) string { return strings.TrimLeft(key, "0") }

// hostsOn are the virtual hosts of a port, which had others, or none (nil) if it was not served.
func (t *Tables) hostsOn(v scope.PortView, touch *scope.Affected, had *portHosts) outbound.VirtualHosts {
	var hosts outbound.VirtualHosts
	if had != nil {
		hosts = had.hosts
	} else if !touch.All {
		touch = scope.Everything(v.Memo, v.Scope)
	}
	list := make([]chunked.Edit[*encodecache.Fragment], 0, len(touch.Routes))
	for host := range touch.EachRouteHost(v.Snapshot, v.Port) {
		v.Scope.Begin(scope.Unit{Kind: scope.OfVirtualHost, Host: host, Port: v.Port})
		f := t.VirtualHostOf(v, host)
		list = append(list, chunked.Edit[*encodecache.Fragment]{Key: host, Value: f, Delete: f == nil})
	}
	return t.sections.hosts.Share(hosts.Apply(list))
}

// routePorts yields the shared HTTP ports that have a route configuration.
func (b *base) routePorts() iter.Seq[int] {
	return func(yield func(int) bool) {
		for k := range b.hosts.All() {
			if p, err := strconv.Atoi(k); err == nil && !yield(p) {
				return
			}
		}
	}
}
