package plan

import (
	"iter"
	"maps"
	"strconv"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// everything is what a scope is made from when nothing is there yet: of an explicit one no more than it may see.
func everything(k *known, sc *Scope) *touched {
	t := &touched{all: true, known: k}
	if !sc.Wide() {
		t.hosts = sc.hosts(k.n)
		t.routes = t.hosts
		t.findPorts(k.n)
	}
	return t
}

// findPorts works out what the services of the touched hosts have for ports.
func (t *touched) findPorts(snaps ...*snapshot.Snapshot) {
	t.ports, t.routePorts, t.sniffed = map[int]struct{}{}, map[int]struct{}{anyHostPort: {}}, map[string]struct{}{}
	each := func(hosts map[string]struct{}, f func(svc *value.Service, p *value.Port)) {
		for h := range hosts {
			for _, n := range snaps {
				for svc := range n.ServicesOfHost(h) {
					for _, p := range svc.Ports {
						f(svc, p)
					}
				}
			}
		}
	}
	each(t.hosts, func(_ *value.Service, p *value.Port) { t.ports[p.Number] = struct{}{} })
	each(t.routes, func(svc *value.Service, p *value.Port) {
		t.routePorts[p.Number] = struct{}{}
		if p.Protocol == value.Auto {
			t.sniffed[svc.Host] = struct{}{}
		}
	})
}

// services reports whether the services that a scope sees may differ.
func (t *touched) services() bool { return t.all || len(t.hosts) > 0 || t.served }

// eachHost yields the hosts whose clusters and listeners may differ.
func (t *touched) eachHost(old, n *snapshot.Snapshot) iter.Seq[string] {
	return t.each(t.hosts, old, n)
}

// eachSniffed yields the hosts of services whose own route configurations may differ.
func (t *touched) eachSniffed(b *base, n *snapshot.Snapshot) iter.Seq[string] {
	if b.scope.Traits.Type == value.Proxyless {
		return t.each(t.routes, b.snap, n)
	}
	return t.each(t.sniffed, b.snap, n)
}

// each yields hosts, or those of all services if anything may differ.
func (t *touched) each(hosts map[string]struct{}, old, n *snapshot.Snapshot) iter.Seq[string] {
	if t.all && t.hosts == nil {
		hosts = map[string]struct{}{}
		for _, s := range []*snapshot.Snapshot{old, n} {
			for svc := range s.Services() {
				hosts[svc.Host] = struct{}{}
			}
		}
	}
	return maps.Keys(hosts)
}

// eachPort yields the ports of the services of touched hosts.
func (t *touched) eachPort(n *snapshot.Snapshot) iter.Seq[int] {
	if t.all && t.hosts == nil {
		return n.Ports()
	}
	return maps.Keys(t.ports)
}

// anyHostPort is the port on which VirtualServices have virtual hosts for all their hosts, whether a service there has
// the port or not.
const anyHostPort = 80

// eachRoutePort yields the ports whose route configurations may differ.
func (t *touched) eachRoutePort(b *base, n *snapshot.Snapshot) iter.Seq[int] {
	switch {
	case t.all && t.hosts == nil:
		return n.Ports()
	case t.wide:
		ports := maps.Clone(t.routePorts)
		for k := range b.hosts.All() {
			p, _ := strconv.Atoi(k)
			ports[p] = struct{}{}
		}
		return maps.Keys(ports)
	}
	return maps.Keys(t.routePorts)
}

// eachRouteHost yields the hosts whose virtual hosts on a port may differ.
func (t *touched) eachRouteHost(n *snapshot.Snapshot, port int) iter.Seq[string] {
	if !t.all || t.hosts != nil {
		return maps.Keys(t.routes)
	}
	hosts := map[string]struct{}{}
	for svc := range n.ServicesOnPort(port) {
		hosts[svc.Host] = struct{}{}
	}
	for vs := range n.VirtualServicesOfGateway(meshGateway) {
		for _, h := range vs.Hosts {
			hosts[h] = struct{}{}
		}
	}
	return maps.Keys(hosts)
}
