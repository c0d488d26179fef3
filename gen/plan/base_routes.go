package plan

import (
	"fmt"
	"strconv"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// portHosts are the virtual hosts of one port's route configuration.
type portHosts struct{ hosts VirtualHosts }

// advanceSniffed replaces the route configurations that services have of their own.
func (t *Tables) advanceSniffed(b *base, n *snapshot.Snapshot, touch *touched, e *edits) {
	for host := range touch.eachSniffed(b, n) {
		for _, r := range t.sniffedRoutes(b.snap, b.scope, host) {
			e.routes.drop(r.Name())
		}
		for _, r := range t.sniffedRoutes(n, b.scope, host) {
			putEntry(&e.routes, r)
		}
	}
}

// advanceRoutes replaces the virtual hosts of the touched hosts, and the route configurations of the ports in which one
// changed.
func (t *Tables) advanceRoutes(b *base, n *snapshot.Snapshot, touch *touched, e *edits) chunked.Map[*portHosts] {
	out := b.hosts
	for port := range touch.eachRoutePort(b, n) {
		k := fmt.Sprintf("%05d", port)
		had, ok := b.hosts.Get(k)
		serves := ok
		if touch.services() {
			serves = b.scope.servesHTTP(n, port)
		}
		switch {
		case serves:
			next := t.hostsOn(portView{n, b.scope, port, touch.known}, touch, had)
			if ok && next.Same(had.hosts) && !touch.all {
				continue
			}
			out = out.Set(k, &portHosts{next})
			r := t.routeConfiguration(n, b.scope, port, next)
			putEntry(&e.routes, r)
		case ok:
			out = out.Delete(k)
			e.routes.drop(strconv.Itoa(port))
		}
	}
	return out
}

// hostsOn are the virtual hosts of a port, which had others, or none (nil) if it was not served.
func (t *Tables) hostsOn(v portView, touch *touched, had *portHosts) VirtualHosts {
	var hosts VirtualHosts
	if had != nil {
		hosts = had.hosts
	} else if !touch.all {
		touch = everything(v.known, v.sc)
	}
	list := make([]chunked.Edit[*encodecache.Fragment], 0, len(touch.routes))
	for host := range touch.eachRouteHost(v.sc, v.n, v.port) {
		f := t.virtualHostOf(v, host)
		list = append(list, chunked.Edit[*encodecache.Fragment]{Key: host, Value: f, Delete: f == nil})
	}
	return hosts.Apply(list)
}
