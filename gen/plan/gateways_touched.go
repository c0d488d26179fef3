package plan

import (
	"slices"
	"strings"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/outbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// touch replaces the servers of the Gateways that changed and marks what VirtualServices and destinations that changed
// have a part in.
func (s *gatewayStep) touch(touch *scope.Affected) {
	var gateways []gatewayChange
	for _, changed := range snapshot.Of[*value.Gateway](touch.Delta.Objects) {
		c := gatewayChange{changed.Old, changed.New}
		if !s.selects(c.old) {
			c.old = nil
		}
		if !s.selects(c.new) {
			c.new = nil
		}
		if c.old != c.new {
			gateways = append(gateways, c)
		}
	}
	s.changeGateways(gateways)
	for _, c := range snapshot.Of[*value.VirtualService](touch.Delta.Objects) {
		s.markService(c.Old, c.New)
	}
	for host := range touch.Hosts {
		s.markDestination(host)
	}
}

// markService marks what a VirtualService has a part in: old as it was, now as it is; either may be nil.
func (s *gatewayStep) markService(old, now *value.VirtualService) {
	if old == now || !s.bears(old) && !s.bears(now) {
		return
	}
	streams := map[*gatewayServer]struct{}{}
	for _, vs := range []*value.VirtualService{old, now} {
		if s.bears(vs) {
			s.markRoutes(vs)
			s.streamsOf(vs, streams)
		}
	}
	for srv := range streams {
		s.restream(srv, old, now)
	}
}

// bears reports whether a VirtualService, which may be nil, can have a part in the router: it is bound to a Gateway and
// the router may see it.
func (s *gatewayStep) bears(vs *value.VirtualService) bool {
	return vs != nil && snapshot.BoundToGateways(vs) && vs.Export.VisibleTo(s.sc.Namespace)
}

// markRoutes marks the hosts that a VirtualService has at any server, before or now.
func (s *gatewayStep) markRoutes(vs *value.VirtualService) {
	for _, r := range []*router{s.was, &s.router} {
		r.eachMeeting(vs, func(h *serverHost, host string) {
			if h.server.route != "" {
				s.editRoutes(h.server.route).hosts[host] = struct{}{}
			}
		})
	}
}

// streamsOf collects the servers without HTTP routes that have a host in common with a VirtualService of TCP or TLS
// routes.
func (s *gatewayStep) streamsOf(vs *value.VirtualService, into map[*gatewayServer]struct{}) {
	if !vs.HasStreams() {
		return
	}
	s.eachMeeting(vs, func(h *serverHost, _ string) {
		if h.server.route == "" {
			into[h.server] = struct{}{}
		}
	})
}

// eachMeeting calls f with each host of a server that has one in common with a VirtualService, and the narrower of the
// two.
func (r *router) eachMeeting(vs *value.VirtualService, f func(h *serverHost, host string)) {
	for _, g := range vs.Gateways {
		for _, o := range vs.Hosts {
			for p := range snapshot.Patterns(o) {
				for _, h := range below(r.asked, indexKey(g, p)) {
					if n, ok := narrower(h.host, o); ok && h.takes(vs) {
						f(h, n)
					}
				}
			}
			if !strings.HasPrefix(o, "*") {
				continue
			}
			for _, h := range below(r.asked, g) {
				if value.HostMatches(o, h.host) && h.takes(vs) {
					f(h, h.host)
				}
			}
		}
	}
}

// markDestination marks what routes to a host, if there is something else to know of it now.
func (s *gatewayStep) markDestination(host string) {
	old, now := gatewayScope{s.old, s.sc}, gatewayScope{s.n, s.sc}
	http := false
	for ns := range s.speakers(host) {
		http = http || old.known(ns, host) != now.known(ns, host)
	}
	a, b := s.sc.Service(s.old, host), s.sc.Service(s.n, host)
	bytes := a != b || a != nil && s.sc.Rule(s.old, a) != s.sc.Rule(s.n, b)
	if !http && !bytes {
		return
	}
	for vs := range s.n.VirtualServicesTo(host) {
		if !s.bears(vs) {
			continue
		}
		if http {
			s.markRoutes(vs)
		}
		streams := map[*gatewayServer]struct{}{}
		s.streamsOf(vs, streams)
		for srv := range streams {
			s.restream(srv, vs, vs)
		}
	}
}

// speakers are the namespaces whose VirtualServices may mean a service of their own by host, and "" for all others.
func (s *gatewayStep) speakers(host string) map[string]struct{} {
	out := map[string]struct{}{"": {}}
	for _, n := range []*snapshot.Snapshot{s.old, s.n} {
		for svc := range n.ServicesOfHost(host) {
			out[svc.Namespace] = struct{}{}
		}
	}
	return out
}

// gatewayScope is what a router knows of destinations.
type gatewayScope struct {
	n  *snapshot.Snapshot
	sc *scope.Scope
}

// service is the one that the VirtualServices of a namespace mean by host: that of their own namespace if the router
// may see it, else the one that the router means.
func (g gatewayScope) service(namespace, host string) *value.Service {
	svc := g.n.Service(value.ServiceKey{Host: host, Namespace: namespace})
	if svc != nil && svc.Export.VisibleTo(g.sc.Namespace) {
		return svc
	}
	return g.sc.Service(g.n, host)
}

// known is what is to know of a host that the VirtualServices of a namespace route to, beside its name.
func (g gatewayScope) known(namespace, host string) gen.Destination {
	d := gen.Destination{Host: host}
	svc := g.service(namespace, host)
	if svc == nil {
		return d
	}
	if d.Target = svc.ExternalName; len(svc.Ports) == 1 {
		d.Port = svc.Ports[0].Number
	}
	if r := g.sc.Rule(g.n, svc); gen.Hashes(r) {
		d.Rule = r
	}
	return d
}

// destinationsOf is what there is to know of the hosts that a VirtualService routes to.
func (s *gatewayStep) destinationsOf(vs *value.VirtualService) (list *gen.DestinationLink) {
	hosts := slices.Collect(outbound.Distinct(snapshot.Destinations(vs)))
	for _, host := range hosts {
		if d := (gatewayScope{s.n, s.sc}).known(vs.Namespace, host); d != (gen.Destination{Host: host}) {
			list = s.tables.Routes.Destinations.Get(gen.DestinationLink{Destination: d, Next: list})
		}
	}
	return list
}
