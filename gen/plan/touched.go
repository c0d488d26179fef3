package plan

import (
	"slices"
	"strings"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// touched is a Delta in terms of units: the hosts whose services, and those whose virtual hosts, may differ between two
// Snapshots for some scope. It is worked out once for each step and then asked by every base.
type touched struct {
	// all: anything may differ. Then hosts and routes are nil, for those that there are, or what one explicit scope may
	// see.
	all bool
	// hosts are those whose clusters and listeners may differ; routes those whose virtual hosts may, patterns of
	// VirtualServices included.
	hosts, routes map[string]struct{}
	// ports and routePorts are those of the services of hosts and of routes; sniffed those of routes with a service
	// that has a sniffed port.
	ports, routePorts map[int]struct{}
	sniffed           map[string]struct{}
	// wide: a host of routes has no service in one of the Snapshots, so it may stand in the route configuration of any
	// port.
	wide bool
	// served: whether a port has a route configuration may differ, whatever hosts are touched.
	served bool
	// virtual: so may the listener of all intercepted connections.
	virtual bool
	// delta is what differs; nil if anything may.
	delta *snapshot.Delta
	// known is what was found out about the newer Snapshot; nil if anything may differ.
	known *known
}

// touchedBy works out what d, the difference between old and n, touches.
func (t *Tables) touchedBy(old, n *snapshot.Snapshot, d *snapshot.Delta) *touched {
	if d.All || old.Mesh == nil {
		return &touched{all: true}
	}
	s := &step{
		touched: touched{hosts: map[string]struct{}{}, routes: map[string]struct{}{}, delta: d, known: newKnown(n)},
		tables:  t, old: old, n: n,
		done: map[string]struct{}{}, seen: map[nearAt]struct{}{}, joined: map[joinedAt]struct{}{},
	}
	for k := range d.ServiceKeys() {
		s.service(k)
	}
	for _, c := range snapshot.Of[*value.VirtualService](d.Objects) {
		s.virtualService(c.Old, c.New)
	}
	for _, c := range snapshot.Of[*value.DestinationRule](d.Objects) {
		s.rule(c.Old)
		s.rule(c.New)
	}
	for h := range s.routes {
		if !hasService(old, h) || !hasService(n, h) {
			s.wide = true
		}
	}
	s.findPorts(old, n)
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
	done   map[string]struct{} // whose virtual hosts are marked, with those that depend on them
	// seen and joined are what near and together have done: a VirtualService of many hosts is come to from each of
	// them.
	seen   map[nearAt]struct{}
	joined map[joinedAt]struct{}
}

// nearAt is a host in one of the two Snapshots, joinedAt a VirtualService.
type nearAt struct {
	n    *snapshot.Snapshot
	host string
}

type joinedAt struct {
	n    *snapshot.Snapshot
	rule *value.VirtualService
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
	s.virtualHosts(host)
	s.both(func(n *snapshot.Snapshot) {
		for _, h := range s.tables.relatedListeners(n, host) {
			s.host(h)
		}
	})
}

// virtualHosts marks those of a host, and those that depend on them: the other hosts of VirtualServices that name it,
// too, which stand on a port only with a service there.
func (s *step) virtualHosts(host string) {
	if _, ok := s.done[host]; ok {
		return
	}
	s.done[host] = struct{}{}
	s.route(host)
	s.both(func(n *snapshot.Snapshot) {
		s.near(n, host)
		for p := range snapshot.Patterns(host) {
			for vs := range n.VirtualServicesOfHost(p) {
				s.together(n, vs)
			}
		}
	})
}

// near marks the virtual hosts near one host, once in a step: many VirtualServices may name it.
func (s *step) near(n *snapshot.Snapshot, host string) {
	at := nearAt{n, host}
	if _, ok := s.seen[at]; ok {
		return
	}
	s.seen[at] = struct{}{}
	for _, h := range nearHosts(n, host) {
		s.route(h)
	}
}

// together marks all hosts of a VirtualService, once in a step: each of its hosts leads here.
func (s *step) together(n *snapshot.Snapshot, vs *value.VirtualService) {
	at := joinedAt{n, vs}
	if _, ok := s.joined[at]; ok || !slices.Contains(vs.Gateways, meshGateway) {
		return
	}
	s.joined[at] = struct{}{}
	for _, h := range vs.Hosts {
		s.near(n, h)
	}
}

func (s *step) route(host string) { s.routes[host] = struct{}{} }

// service marks a service and what else is made from it: the virtual hosts that route to it, ExternalName services that
// stand for it, services that share an address with it, and patterns of VirtualServices that cover it.
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
		for vs := range n.VirtualServicesOfOddPatterns() {
			for _, h := range vs.Hosts {
				if value.HostMatches(h, k.Host) {
					s.route(h)
				}
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
		for _, h := range vs.Hosts {
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
	for svc := range n.ServicesUnder(host) {
		mark(svc.Host)
	}
}

// virtualService marks what a VirtualService makes another of. One of HTTP routes alone decides nothing about clusters
// and listeners, but that explicit scopes see the services that it routes to.
func (s *step) virtualService(old, now *value.VirtualService) {
	mark, alike := s.virtualHosts, leadsAlike(old, now)
	if hasStreams(old) || hasStreams(now) {
		mark = s.host
	}
	for _, vs := range []*value.VirtualService{old, now} {
		if vs == nil || !snapshot.BoundToSidecars(vs) {
			continue // routers find out by themselves what they have of it
		}
		s.both(func(n *snapshot.Snapshot) {
			for _, h := range vs.Hosts {
				s.covered(n, h, mark)
			}
		})
		if alike {
			continue
		}
		for h := range snapshot.Destinations(vs) {
			s.host(h)
		}
	}
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
