package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// portHosts are the virtual hosts of one port's route configuration.
type portHosts struct{ hosts VirtualHosts }

// moveSniffed replaces the route configurations that services have of their own.
func (t *Tables) moveSniffed(m *move) {
	for host := range m.touch.eachSniffed(m.from, m.n) {
		for _, r := range t.sniffedRoutes(m.from.snap, m.from.scope, host) {
			m.edits.routes.drop(r.Name())
		}
		m.to.begin(unit{of: ofSniffed, host: host})
		for _, r := range t.sniffedRoutes(m.n, m.to, host) {
			putEntry(&m.edits.routes, r)
		}
	}
}

// moveRoutes replaces the virtual hosts of the touched hosts, and the route configurations of the ports in which one
// changed.
func (t *Tables) moveRoutes(m *move) chunked.Map[*portHosts] {
	out := m.from.hosts
	for port := range m.touch.eachRoutePort(m.from, m.n) {
		k := portName(port)
		had, ok := out.Get(k)
		serves := ok
		if m.touch.services() {
			m.to.begin(unit{of: ofServed, port: port})
			serves = m.to.servesHTTP(m.n, port)
		}
		switch {
		case serves:
			next := t.hostsOn(portView{m.n, m.to, port, m.touch.known}, m.touch, had)
			if ok && next.Same(had.hosts) && !m.touch.all {
				continue
			}
			out = out.Set(k, &portHosts{next})
			r := t.routeConfiguration(m.n, m.to, port, next)
			putEntry(&m.edits.routes, r)
		case ok:
			out = out.Delete(k)
			m.edits.routes.drop(strconv.Itoa(port))
			for host := range had.hosts.All() {
				m.to.begin(unit{of: ofVirtualHost, host: host, port: port})
			}
		}
		if !serves && m.to.insiders != nil {
			m.to.insiders.meetAll(unit{of: ofServed, port: port})
		}
	}
	return out
}

// portName is the key of a port in a Map.
func portName(port int) string { return fmt.Sprintf("%05d", port) }

// routeName is the name of the route configuration of the port with a key.
func routeName(key string) string { return strings.TrimLeft(key, "0") }

// hostsOn are the virtual hosts of a port, which had others, or none (nil) if it was not served.
func (t *Tables) hostsOn(v portView, touch *touched, had *portHosts) VirtualHosts {
	var hosts VirtualHosts
	if had != nil {
		hosts = had.hosts
	} else if !touch.all {
		touch = everything(v.known, v.sc)
	}
	list := make([]chunked.Edit[*encodecache.Fragment], 0, len(touch.routes))
	for host := range touch.eachRouteHost(v.n, v.port) {
		v.sc.begin(unit{of: ofVirtualHost, host: host, port: v.port})
		f := t.virtualHostOf(v, host)
		list = append(list, chunked.Edit[*encodecache.Fragment]{Key: host, Value: f, Delete: f == nil})
	}
	return t.sections.hosts.Share(hosts.Apply(list))
}
