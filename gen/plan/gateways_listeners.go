package plan

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot/value"
)

// listener is the one of all servers at a port; nil if none of them leads anywhere.
func (g *gatewayView) listener(p *gatewayPort) *encodecache.Entry {
	topology := g.n.Mesh.Config.GetDefaultConfig().GetGatewayTopology()
	k := gen.GatewayListenerKey{Bind: p.bind, Port: p.number, ProxyProtocol: topology.GetProxyProtocol() != nil}
	if k.Bind == "" {
		k.Bind = "0.0.0.0"
		if !g.sc.Traits.IPv4 && g.sc.Traits.IPv6 {
			k.Bind = "::"
		}
	}
	var chains []gen.GatewayChainKey
	taken, plain := map[string]struct{}{}, false
	for _, s := range p.servers {
		if !s.protocol.IsHTTP() {
			chains = append(chains, g.chains(k, s, taken)...)
		} else if !plain { // one for all, with the routes of all
			chains, plain = append(chains, g.httpChain(k, s, nil)), true
		}
	}
	if len(chains) == 0 {
		return nil
	}
	var parts []*encodecache.Fragment
	for _, c := range chains {
		k.TLS = k.TLS || c.ServerNames != "" || c.TLS != nil
		parts = append(parts, g.tables.gateways.chains.Get(c))
	}
	return encodecache.NewComposite(ListenerType, k.Name(), g.tables.gateways.listeners.Get(k), slices.Values(parts))
}

// httpChain is the chain of an HTTP server, or of an HTTPS server that terminates TLS.
func (g *gatewayView) httpChain(l gen.GatewayListenerKey, s *gatewayServer, tls *networking.ServerTLSSettings) gen.GatewayChainKey {
	k := gen.GatewayChainKey{
		Mesh: g.n.Mesh, Filters: g.sc.Traits.Filters, HTTP10: g.sc.Traits.HTTP10, GRPCWeb: s.protocol == value.GRPCWeb, TLS: tls,
		RouteName: s.route, StatPrefix: "outbound_" + l.Name(),
	}
	if tls != nil {
		k.ServerNames, k.ServerName = gen.ServerNames(s.sniHosts()), s.GetName()
	}
	return k
}

// chains are the chains of a server that is no plain HTTP. taken are the SNI names of the routes of servers that pass TLS through.
func (g *gatewayView) chains(l gen.GatewayListenerKey, s *gatewayServer, taken map[string]struct{}) []gen.GatewayChainKey {
	switch {
	case s.terminatesHTTPS():
		return []gen.GatewayChainKey{g.httpChain(l, s, s.GetTls())}
	case s.passthrough():
		return g.passthroughChains(s, taken)
	}
	tcp, ok := g.tcpRoute(s)
	if !ok {
		return nil
	}
	k := gen.GatewayChainKey{TCP: tcp}
	if s.GetTls() != nil {
		k.TLS, k.Mesh, k.ServerNames, k.Filters = s.GetTls(), g.n.Mesh, gen.ServerNames(s.sniHosts()), tcpFilters(g.sc)
	}
	return []gen.GatewayChainKey{k}
}

// tcpRoute is what the first VirtualService with a TCP route for a server forwards to.
func (g *gatewayView) tcpRoute(s *gatewayServer) (gen.TCPProxyKey, bool) {
	for _, vs := range g.virtualServices(s) {
		if !s.takes(vs) {
			continue
		}
		for _, r := range vs.Spec.GetTcp() {
			matches := len(r.GetMatch()) == 0 || slices.ContainsFunc(r.GetMatch(), func(m *networking.L4MatchAttributes) bool {
				return s.matches(m.GetPort(), m.GetGateways())
			})
			if matches && len(r.GetRoute()) > 0 {
				return g.forward(s, vs, r.GetRoute()), true
			}
		}
	}
	return gen.TCPProxyKey{}, false
}

// passthroughChains are those of the TLS routes for a server: one for each match, by its SNI names.
func (g *gatewayView) passthroughChains(s *gatewayServer, taken map[string]struct{}) []gen.GatewayChainKey {
	var out []gen.GatewayChainKey
	for _, vs := range g.virtualServices(s) {
		if !s.takes(vs) {
			continue
		}
		for _, r := range vs.Spec.GetTls() {
			for _, m := range r.GetMatch() {
				if len(r.GetRoute()) == 0 || !s.matches(m.GetPort(), m.GetGateways()) || !take(taken, s.GetBind(), m.GetSniHosts()) {
					continue
				}
				out = append(out, gen.GatewayChainKey{ServerNames: gen.ServerNames(m.GetSniHosts()), TCP: g.forward(s, vs, r.GetRoute())})
			}
		}
	}
	return out
}

// take claims SNI names; it claims none if one is claimed already, for two chains with one name make the whole listener invalid.
func take(taken map[string]struct{}, bind string, names []string) bool {
	for _, n := range names {
		if _, ok := taken[bind+"/"+n]; ok {
			return false
		}
	}
	for _, n := range names {
		taken[bind+"/"+n] = struct{}{}
	}
	return true
}

// takes reports whether a server has a host in common with a VirtualService.
func (s *gatewayServer) takes(vs *value.VirtualService) bool {
	return slices.ContainsFunc(s.GetHosts(), func(h string) bool {
		ns, host := serverHost(h)
		return (ns == "*" || ns == vs.Namespace) && slices.ContainsFunc(vs.Spec.GetHosts(), func(o string) bool {
			return value.HostMatches(host, o) || value.HostMatches(o, host)
		})
	})
}

// matches reports whether a match of a TCP or TLS route is for a server.
func (s *gatewayServer) matches(port uint32, gateways []string) bool {
	return (port == 0 || port == s.GetPort().GetNumber()) && (len(gateways) == 0 || slices.Contains(gateways, s.gateway))
}

// forward is where the destinations of a TCP or TLS route lead.
func (g *gatewayView) forward(s *gatewayServer, vs *value.VirtualService, routes []*networking.RouteDestination) gen.TCPProxyKey {
	port := &value.Port{Name: s.GetPort().GetName(), Number: int(s.GetPort().GetNumber()), Protocol: s.protocol}
	return outboundView{g.tables, g.n, g.sc}.routed(vs, routes, port).TCP
}
