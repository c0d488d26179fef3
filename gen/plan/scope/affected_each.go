package scope

import (
	"iter"
	"maps"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Everything returns what a scope is made from when nothing is there yet: of an explicit one no more than it may see.
func Everything(k *Memo, sc *Scope) *Affected {
	t := &Affected{All: true, Memo: k}
	if !sc.Wide() {
		t.Hosts = sc.Hosts(k.Snapshot)
		t.Routes = t.Hosts
		t.findPorts(k.Snapshot)
	}
	return t
}

// OnlyRoutes reports whether nothing but virtual hosts of ports that are served before and after may differ.
func (t *Affected) OnlyRoutes() bool {
	return !t.All && len(t.Hosts) == 0 && !t.served && !t.Virtual && t.Memo != nil
}

// OnRoutePort reports whether the route configuration of a port that is served may differ.
func (t *Affected) OnRoutePort(port int) bool {
	_, ok := t.routePorts[port]
	return ok || t.Wide
}

// Services reports whether the services that a scope sees may differ.
func (t *Affected) Services() bool { return t.All || len(t.Hosts) > 0 || t.served }

// EachHost yields the hosts whose clusters and listeners may differ.
func (t *Affected) EachHost(old, n *snapshot.Snapshot) iter.Seq[string] {
	return t.each(t.Hosts, old, n)
}

// EachSniffed yields the hosts of services whose own route configurations may differ.
func (t *Affected) EachSniffed(sc *Scope, old, n *snapshot.Snapshot) iter.Seq[string] {
	if sc.Traits.Type == value.Proxyless {
		return t.each(t.Routes, old, n)
	}
	return t.each(t.sniffed, old, n)
}

// each yields hosts, or those of all services if anything may differ.
func (t *Affected) each(hosts map[string]struct{}, old, n *snapshot.Snapshot) iter.Seq[string] {
	if t.All && t.Hosts == nil {
		hosts = map[string]struct{}{}
		for _, s := range []*snapshot.Snapshot{old, n} {
			for svc := range s.Services() {
				hosts[svc.Host] = struct{}{}
			}
		}
	}
	return maps.Keys(hosts)
}

// EachPort yields the ports of the services of touched hosts.
func (t *Affected) EachPort(n *snapshot.Snapshot) iter.Seq[int] {
	if t.All && t.Hosts == nil {
		return n.Ports()
	}
	return maps.Keys(t.ports)
}

// EachRoutePort yields the ports whose route configurations may differ. served are those that had one.
func (t *Affected) EachRoutePort(served iter.Seq[int], n *snapshot.Snapshot) iter.Seq[int] {
	switch {
	case t.All && t.Hosts == nil:
		return n.Ports()
	case t.Wide:
		ports := maps.Clone(t.routePorts)
		for p := range served {
			ports[p] = struct{}{}
		}
		return maps.Keys(ports)
	}
	return maps.Keys(t.routePorts)
}

// EachRouteHost yields the hosts whose virtual hosts on a port may differ.
func (t *Affected) EachRouteHost(n *snapshot.Snapshot, port int) iter.Seq[string] {
	if !t.All || t.Hosts != nil {
		return maps.Keys(t.Routes)
	}
	hosts := map[string]struct{}{}
	for svc := range n.ServicesOnPort(port) {
		hosts[svc.Host] = struct{}{}
	}
	for vs := range n.VirtualServicesOfGateway(MeshGateway) {
		for _, h := range vs.Hosts {
			hosts[h] = struct{}{}
		}
	}
	return maps.Keys(hosts)
}
