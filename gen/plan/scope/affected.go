package scope

import (
	"slices"
	"strings"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Affected is a Delta in terms of units: the hosts whose services, and those whose virtual hosts, may differ between
// two Snapshots for some scope. It is worked out once for each step and then asked by every base.
type Affected struct {
	// All tells that anything may differ. Then Hosts and Routes are nil, which stands for all hosts that there are, or
	// for those that one explicit Scope may see.
	All bool
	// Hosts are those whose clusters and listeners may differ; Routes those whose virtual hosts may, patterns of
	// VirtualServices included.
	Hosts, Routes map[string]struct{}
	// ports and routePorts are the ports of the services of Hosts and of Routes. sniffed are the hosts of Routes with a
	// service that has a port whose protocol is sniffed.
	ports, routePorts map[int]struct{}
	sniffed           map[string]struct{}
	// Wide tells that a host of Routes has no service in one of the Snapshots, so that it may stand in the route
	// configuration of any port.
	Wide bool
	// served tells that a port may begin or cease to have a route configuration, whatever hosts are affected.
	served bool
	// Virtual tells that the listener of all intercepted connections may differ.
	Virtual bool
	// Delta is what differs; nil if anything may.
	Delta *snapshot.Delta
	// Memo is what was found out about the newer Snapshot; nil if anything may differ.
	Memo *Memo
}

// step collects what one Delta touches.
type step struct {
	Affected
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
	if _, ok := s.Hosts[host]; ok {
		return
	}
	s.Hosts[host] = struct{}{}
	s.virtualHosts(host)
	s.both(func(n *snapshot.Snapshot) {
		for _, h := range relatedListeners(n, host) {
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
	if _, ok := s.joined[at]; ok || !slices.Contains(vs.Gateways, MeshGateway) {
		return
	}
	s.joined[at] = struct{}{}
	for _, h := range vs.Hosts {
		s.near(n, h)
	}
}

func (s *step) route(host string) { s.Routes[host] = struct{}{} }

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
		s.covered(n, d.Host, func(h string) {
			s.host(h)
			s.callers(n, h)
		})
	})
}

// findPorts works out what the services of the touched hosts have for ports.
func (t *Affected) findPorts(snaps ...*snapshot.Snapshot) {
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
	each(t.Hosts, func(_ *value.Service, p *value.Port) { t.ports[p.Number] = struct{}{} })
	each(t.Routes, func(svc *value.Service, p *value.Port) {
		t.routePorts[p.Number] = struct{}{}
		if p.Protocol == value.Auto {
			t.sniffed[svc.Host] = struct{}{}
		}
	})
}
