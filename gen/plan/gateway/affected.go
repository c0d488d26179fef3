package gateway

import (
	"strings"

	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// replaceAffected replaces the servers of the Gateways that changed, and marks what VirtualServices and destinations
// that changed have a part in.
func (s *step) replaceAffected(affected *scope.Affected) {
	var gateways []gatewayChange
	for _, changed := range snapshot.Of[*value.Gateway](affected.Delta.Objects) {
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
	for _, c := range snapshot.Of[*value.VirtualService](affected.Delta.Objects) {
		s.markService(c.Old, c.New)
	}
	for host := range affected.Hosts {
		s.markDestination(host)
	}
}

// markService marks what a VirtualService has a part in: old as it was, now as it is; either may be nil.
func (s *step) markService(old, now *value.VirtualService) {
	if old == now || !s.bears(old) && !s.bears(now) {
		return
	}
	streams := map[*server]struct{}{}
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

// markRoutes marks the hosts that a VirtualService has at any server, before or now.
func (s *step) markRoutes(vs *value.VirtualService) {
	for _, r := range []*Router{s.was, &s.Router} {
		r.eachMeeting(vs, func(h *serverHost, host string) {
			if h.server.route != "" {
				s.editRoutes(h.server.route).hosts[host] = struct{}{}
			}
		})
	}
}

// streamsOf collects the servers without HTTP routes that have a host in common with a VirtualService of TCP or TLS
// routes.
func (s *step) streamsOf(vs *value.VirtualService, into map[*server]struct{}) {
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
func (r *Router) eachMeeting(vs *value.VirtualService, f func(h *serverHost, host string)) {
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
func (s *step) markDestination(host string) {
	old, now := knowledge{s.old, s.sc}, knowledge{s.n, s.sc}
	http := false
	for ns := range s.speakers(host) {
		http = http || old.known(ns, host) != now.known(ns, host)
	}
	a, b := s.sc.Service(s.old, host), s.sc.Service(s.n, host)
	bytes := a != b || a != nil && s.sc.DestinationRule(s.old, a) != s.sc.DestinationRule(s.n, b)
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
		streams := map[*server]struct{}{}
		s.streamsOf(vs, streams)
		for srv := range streams {
			s.restream(srv, vs, vs)
		}
	}
}

// speakers returns the namespaces whose VirtualServices may mean a service of their own by host, and "" for all others.
func (s *step) speakers(host string) map[string]struct{} {
	out := map[string]struct{}{"": {}}
	for _, n := range []*snapshot.Snapshot{s.old, s.n} {
		for svc := range n.ServicesOfHost(host) {
			out[svc.Namespace] = struct{}{}
		}
	}
	return out
}
