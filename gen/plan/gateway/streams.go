package gateway

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// streams returns the VirtualServices with routes of a kind that are bound to a server's Gateway and have a host in
// common with it, in order of precedence.
func (s *step) streams(srv *server, kind snapshot.RouteKind) (out []*value.VirtualService) {
	seen := map[*value.VirtualService]struct{}{}
	add := func(vs *value.VirtualService) {
		if _, ok := seen[vs]; !ok && srv.meets(vs) && vs.Export.VisibleTo(s.sc.Namespace) {
			out = append(out, vs)
		}
		seen[vs] = struct{}{}
	}
	for _, h := range srv.asks {
		if strings.HasPrefix(h.host, "*") {
			for vs := range s.n.RoutesOf(srv.gateway, kind) {
				add(vs)
			}
			break
		}
		for p := range snapshot.Patterns(h.host) {
			for vs := range s.n.RoutesAt(srv.gateway, kind, p) {
				add(vs)
			}
		}
	}
	slices.SortFunc(out, s.sc.ByPrecedence)
	return out
}

// meets reports whether a server has a host in common with a VirtualService.
func (srv *server) meets(vs *value.VirtualService) bool {
	return slices.ContainsFunc(srv.asks, func(h *serverHost) bool {
		return h.takes(vs) && slices.ContainsFunc(vs.Hosts,
			func(o string) bool { _, ok := narrower(h.host, o); return ok })
	})
}

// narrower is, of two hosts of which one falls under the other, that one.
func narrower(a, b string) (string, bool) {
	switch {
	case value.HostMatches(b, a):
		return a, true
	case value.HostMatches(a, b):
		return b, true
	}
	return "", false
}

// tcpChain returns the chain that forwards the bytes of a server: by the first VirtualService with a TCP route for it.
func (s *step) tcpChain(srv *server) (k gen.GatewayChainKey, ok bool) {
	for _, vs := range s.streams(srv, snapshot.TCPRoutes) {
		for _, r := range vs.TCP {
			matches := len(r.Matches) == 0 || slices.ContainsFunc(r.Matches, srv.matches)
			if !matches || len(r.Destinations) == 0 {
				continue
			}
			k.TCP, k.Gateway, k.VirtualService = s.forward(srv, vs, r.Destinations), srv.owner, ownerOf(vs.Meta)
			if srv.TLS != nil {
				k.TLS, k.Servers, k.ServerNames = srv.TLS, s.n.Mesh.Servers, gen.ServerNames(srv.sniHosts())
				k.Filters = s.sc.Traits.Filters & gen.TCPExtensions()
			}
			return k, true
		}
	}
	return k, false
}

// passthroughUnits returns the chains of the TLS routes of a VirtualService for a server: one for each match, by its
// SNI names.
func (s *step) passthroughUnits(srv *server, vs *value.VirtualService) (out []*chainUnit) {
	for i, r := range vs.TLS {
		for j, m := range r.Matches {
			if len(r.Destinations) == 0 || !srv.matches(m) {
				continue
			}
			k := gen.GatewayChainKey{
				Gateway: srv.owner, VirtualService: ownerOf(vs.Meta), ServerNames: gen.ServerNames(m.ServerNames),
				TCP: s.forward(srv, vs, r.Destinations),
			}
			out = append(out, s.unit(indexKey(s.unitsFor(srv, vs), fmt.Sprintf("%05d", i), fmt.Sprintf("%05d", j)), k,
				m.ServerNames...))
		}
	}
	return out
}

// unitsFor returns the common first part of the keys of the units that a VirtualService has at a server that passes TLS
// through.
func (s *step) unitsFor(srv *server, vs *value.VirtualService) string {
	return indexKey(serverUnits(srv), fmt.Sprint(s.sc.Reach(vs)), fmt.Sprintf("%012d", vs.Created), vs.Name,
		vs.Namespace)
}

// matches reports whether a match of a TCP or TLS route is for a server.
func (srv *server) matches(m *value.StreamMatch) bool {
	return (m.Port == 0 || m.Port == srv.Port.Number) &&
		(len(m.Gateways) == 0 || slices.Contains(m.Gateways, srv.gateway))
}

// forward returns where the destinations of a TCP or TLS route lead.
func (s *step) forward(srv *server, vs *value.VirtualService,
	routes []value.WeightedDestination) gen.TCPProxyKey {
	port := &value.Port{Name: srv.Port.Name, Number: srv.Port.Number, Protocol: srv.Port.Protocol}
	return s.outbound.View(s.n, s.sc).Routed(vs, routes, port).TCP
}

// restream makes the chains of a server anew that a VirtualService has a part in: old as it was, now as it is; either
// may be nil.
func (s *step) restream(srv *server, old, now *value.VirtualService) {
	e := s.editListener(srv.at())
	if srv.passthrough() {
		if l := s.was.listener(srv.at()); old != nil && l != nil {
			for key := range below(l.units, s.unitsFor(srv, old)) {
				e.units.Drop(key)
			}
		}
		if s.bears(now) && slices.Contains(now.Gateways, srv.gateway) && srv.meets(now) {
			for _, u := range s.passthroughUnits(srv, now) {
				e.units.Put(u.key, u)
			}
		}
		return
	}
	key := indexKey(serverUnits(srv), "")
	e.units.Drop(key)
	if k, ok := s.tcpChain(srv); ok {
		e.units.Put(key, s.unit(key, k))
	}
}
