package plan

import (
	"iter"
	"strconv"
	"strings"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// touched is a Delta in terms of units: the hosts whose services, and those whose virtual hosts, may differ between two Snapshots for some
// scope. It is worked out once for each step and then asked by every base.
type touched struct {
	all bool
	// hosts are those whose clusters and listeners may differ; routes those whose virtual hosts may, patterns of VirtualServices included.
	hosts, routes map[string]struct{}
	// wide: a host of routes has no service in one of the Snapshots, so it may stand in the route configuration of any port.
	wide bool
	// delta is what differs; nil if anything may.
	delta *snapshot.Delta
}

// touchedBy works out what d, the difference between old and n, touches.
func (t *Tables) touchedBy(old, n *snapshot.Snapshot, d *snapshot.Delta) *touched {
	if d.All || old.Mesh == nil {
		return &touched{all: true}
	}
	s := &step{touched{hosts: map[string]struct{}{}, routes: map[string]struct{}{}, delta: d}, t, old, n}
	for k := range d.Services {
		s.service(k)
	}
	for k := range d.Objects {
		switch k.Kind {
		case value.KindVirtualService:
			s.virtualService(old.VirtualService(k.Namespace, k.Name))
			s.virtualService(n.VirtualService(k.Namespace, k.Name))
		case value.KindDestinationRule:
			s.rule(old.DestinationRule(k.Namespace, k.Name))
			s.rule(n.DestinationRule(k.Namespace, k.Name))
		}
	}
	for h := range s.routes {
		if !hasService(old, h) || !hasService(n, h) {
			s.wide = true
		}
	}
	return &s.touched
}

func hasService(n *snapshot.Snapshot, host string) bool {
	for range n.ServicesOfHost(host) {
		return true
	}
	return false
}

// step collects what one Delta touches.
type step struct {
	touched
	tables *Tables
	old, n *snapshot.Snapshot
}

func (s *step) both(f func(*snapshot.Snapshot)) {
	f(s.old)
	f(s.n)
}

// host marks everything that is made from the services of a host.
func (s *step) host(host string) {
	if _, ok := s.hosts[host]; ok {
		return
	}
	s.hosts[host] = struct{}{}
	s.route(host)
	s.both(func(n *snapshot.Snapshot) {
		for _, h := range s.tables.relatedHosts(n, host) {
			s.route(h)
		}
		for _, h := range s.tables.relatedListeners(n, host) {
			s.host(h)
		}
	})
}

func (s *step) route(host string) { s.routes[host] = struct{}{} }

// service marks a service and what else is made from it: the virtual hosts that route to it, ExternalName services that stand for it,
// services that share an address with it, and patterns of VirtualServices that cover it.
func (s *step) service(k value.ServiceKey) {
	s.host(k.Host)
	s.both(func(n *snapshot.Snapshot) {
		s.callers(n, k.Host)
		for a := range n.AliasesOf(k.Host) {
			s.host(a.Host)
		}
		if svc := n.Service(k); svc != nil {
			for _, a := range svc.Addresses {
				for o := range n.ServicesAt(a) {
					s.host(o.Host)
				}
			}
		}
		for p := range snapshot.Patterns(k.Host) {
			for range n.VirtualServicesOfHost(p) {
				s.route(p)
				break
			}
		}
	})
}

// callers marks the hosts of the VirtualServices that route to host.
func (s *step) callers(n *snapshot.Snapshot, host string) {
	for vs := range n.VirtualServicesTo(host) {
		if !snapshot.BoundToSidecars(vs) {
			continue // routers find out by themselves what they have of it
		}
		for _, h := range vs.Spec.GetHosts() {
			s.covered(n, h, s.route)
		}
	}
}

// covered calls mark for host and, if it is a pattern, for every host of a service that it covers.
func (s *step) covered(n *snapshot.Snapshot, host string, mark func(string)) {
	mark(host)
	if !strings.HasPrefix(host, "*") {
		return
	}
	for svc := range n.Services() {
		if value.HostMatches(host, svc.Host) {
			mark(svc.Host)
		}
	}
}

func (s *step) virtualService(vs *value.VirtualService) {
	if vs == nil || !snapshot.BoundToSidecars(vs) {
		return // routers find out by themselves what they have of it
	}
	s.both(func(n *snapshot.Snapshot) {
		for _, h := range vs.Spec.GetHosts() {
			s.covered(n, h, s.host)
		}
		for h := range snapshot.Destinations(vs) { // an explicit scope sees them because of this object
			s.host(h)
		}
	})
}

func (s *step) rule(d *value.DestinationRule) {
	if d == nil {
		return
	}
	s.both(func(n *snapshot.Snapshot) {
		s.covered(n, d.Spec.GetHost(), func(h string) {
			s.host(h)
			s.callers(n, h)
		})
	})
}

// eachHost yields the hosts whose clusters and listeners may differ.
func (t *touched) eachHost(old, n *snapshot.Snapshot) iter.Seq[string] {
	return t.each(t.hosts, old, n)
}

// eachRouted yields the hosts of services whose routes may differ.
func (t *touched) eachRouted(old, n *snapshot.Snapshot) iter.Seq[string] {
	return t.each(t.routes, old, n)
}

// each yields hosts, or those of all services if anything may differ.
func (t *touched) each(hosts map[string]struct{}, old, n *snapshot.Snapshot) iter.Seq[string] {
	return func(yield func(string) bool) {
		if t.all {
			hosts = map[string]struct{}{}
			for _, s := range []*snapshot.Snapshot{old, n} {
				for svc := range s.Services() {
					hosts[svc.Host] = struct{}{}
				}
			}
		}
		for h := range hosts {
			if !yield(h) {
				return
			}
		}
	}
}

// eachPort yields the ports of the services of touched hosts.
func (t *touched) eachPort(b *base, n *snapshot.Snapshot) iter.Seq[int] {
	return func(yield func(int) bool) {
		for p := range t.ports(b.snap, n, t.hosts) {
			if !yield(p) {
				return
			}
		}
	}
}

func (t *touched) ports(old, n *snapshot.Snapshot, hosts map[string]struct{}) map[int]struct{} {
	out := map[int]struct{}{}
	for _, s := range []*snapshot.Snapshot{old, n} {
		if t.all {
			for p := range s.Ports() {
				out[p] = struct{}{}
			}
			continue
		}
		for h := range hosts {
			for svc := range s.ServicesOfHost(h) {
				for _, p := range svc.Ports {
					out[p.Number] = struct{}{}
				}
			}
		}
	}
	return out
}

// anyHostPort is the port on which VirtualServices have virtual hosts for all their hosts, whether a service there has the port or not.
const anyHostPort = 80

// eachRoutePort yields the ports whose route configurations may differ.
func (t *touched) eachRoutePort(b *base, n *snapshot.Snapshot) iter.Seq[int] {
	return func(yield func(int) bool) {
		ports := t.ports(b.snap, n, t.routes)
		ports[anyHostPort] = struct{}{}
		if t.wide {
			for k := range b.hosts.All() {
				p, _ := strconv.Atoi(k)
				ports[p] = struct{}{}
			}
		}
		for p := range ports {
			if !yield(p) {
				return
			}
		}
	}
}

// eachRouteHost yields the hosts whose virtual hosts on a port may differ.
func (t *touched) eachRouteHost(b *base, n *snapshot.Snapshot, port int) iter.Seq[string] {
	return func(yield func(string) bool) {
		hosts := t.routes
		if t.all {
			hosts = map[string]struct{}{}
			for svc := range b.scope.ServicesOnPort(n, port) {
				hosts[svc.Host] = struct{}{}
			}
			for vs := range n.VirtualServicesOfGateway("mesh") {
				for _, h := range vs.Spec.GetHosts() {
					hosts[h] = struct{}{}
				}
			}
		}
		for h := range hosts {
			if !yield(h) {
				return
			}
		}
	}
}
