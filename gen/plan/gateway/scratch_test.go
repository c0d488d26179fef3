package gateway

// The configuration of routers as one function of a Snapshot, with nothing kept from one to the next: what the
// incremental one is held against.

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/outbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// config returns the listeners and route configurations of a router: of all Gateways whose selector its labels satisfy,
// merged.
func (g *scratchGateways) config() (listeners, routes []*encodecache.Entry) {
	m := g.merge()
	for _, p := range m.ports {
		if l := g.listener(p); l != nil && g.sc.Traits.MayBind(p.number) {
			listeners = append(listeners, l)
		}
	}
	for _, name := range m.routeNames {
		routes = append(routes, g.routeConfiguration(name, m.byRoute[name]))
	}
	return listeners, routes
}

// scratchGateways makes what one class of routers has from one Snapshot. It lives for one computation.
type scratchGateways struct {
	n      *snapshot.Snapshot
	sc     *scope.Scope
	tables *Tables
	// outbound are the tables of virtual hosts.
	outbound *outbound.Tables

	bound map[string]*boundServices // by Gateway, once asked for
}

// scratchPort is one bind address and port with all servers there.
type scratchPort struct {
	number  int
	bind    string
	servers []*server
}

// scratchMerge are all servers of a router.
type scratchMerge struct {
	ports      []*scratchPort
	byRoute    map[string][]*server
	routeNames []string

	plain  map[int]*server           // the first server of each port whose first is plain text
	used   map[int]bool              // the ports with any
	joined map[bindPort]bool         // where others than the first server joined one with TLS
	names  map[sniName]struct{}      // the SNI names that are taken
	at     map[bindPort]*scratchPort // by address
}

type sniName struct {
	bindPort
	host value.ServerHost
}

// merge merges the servers of all Gateways that select the router, the oldest Gateway's first. Of servers that cannot
// stand together at one port the first wins.
func (g *scratchGateways) merge() *scratchMerge {
	m := &scratchMerge{
		byRoute: map[string][]*server{}, plain: map[int]*server{}, used: map[int]bool{},
		joined: map[bindPort]bool{},
		names:  map[sniName]struct{}{}, at: map[bindPort]*scratchPort{},
	}
	var selected []*value.Gateway
	for gw := range g.n.Gateways() {
		if g.sc.Labels.Contains(gw.Selector()) {
			selected = append(selected, gw)
		}
	}
	slices.SortStableFunc(selected, func(a, b *value.Gateway) int {
		switch {
		case a.Older(b.Meta):
			return -1
		case b.Older(a.Meta):
			return 1
		}
		return 0
	})
	for _, gw := range selected {
		for _, s := range serversOf(g.sc, gw, nil) {
			m.add(s)
		}
	}
	return m
}

// add takes a server in, if it can stand beside those that are there.
func (m *scratchMerge) add(s *server) {
	if s.TLS != nil && !m.claimNames(s) || !m.admits(s) {
		return
	}
	at := bindPort{s.Bind, s.port}
	if m.at[at] == nil {
		m.at[at] = &scratchPort{number: s.port, bind: at.bind}
		m.ports = append(m.ports, m.at[at])
	}
	m.at[at].servers = append(m.at[at].servers, s)
	if s.route != "" {
		if m.byRoute[s.route] == nil {
			m.routeNames = append(m.routeNames, s.route)
		}
		m.byRoute[s.route] = append(m.byRoute[s.route], s)
	}
}

// admits decides by the first server of the port. Beside plain text stands HTTP, and anything at another address.
// Beside TLS stand servers with routes of their own, one at each address without TLS, if it comes before all others but
// the first.
func (m *scratchMerge) admits(s *server) bool {
	if !m.used[s.port] {
		m.used[s.port] = true
		if s.TLS == nil || s.Port.Protocol.IsHTTP() {
			m.plain[s.port] = s
		}
		return true
	}
	if plain := m.plain[s.port]; plain != nil {
		return plain.Bind != s.Bind || plain.mixes(s)
	}
	if s.route != "" && m.byRoute[s.route] != nil {
		return false
	}
	at := bindPort{s.Bind, s.port}
	first := !m.joined[at]
	m.joined[at] = true
	return first || s.TLS != nil
}

// mixes reports whether two servers can share a port in plain text.
func (s *server) mixes(o *server) bool {
	return s.Port.Protocol.IsHTTP() && o.Port.Protocol.IsHTTP()
}

// claimNames takes the SNI names of a server; it takes none if one is taken already.
func (m *scratchMerge) claimNames(s *server) bool {
	at := bindPort{s.Bind, s.port}
	for _, h := range s.Hosts {
		if _, ok := m.names[sniName{at, h}]; ok {
			return false
		}
	}
	for _, h := range s.Hosts {
		m.names[sniName{at, h}] = struct{}{}
	}
	return true
}

// boundServices are the VirtualServices bound to a Gateway that the router's namespace may see, in order of precedence.
type boundServices struct {
	list []*value.VirtualService
}

func (g *scratchGateways) boundTo(gateway string) *boundServices {
	if b, ok := g.bound[gateway]; ok {
		return b
	}
	b := &boundServices{}
	for vs := range g.n.VirtualServicesOfGateway(gateway) {
		if vs.Export.VisibleTo(g.sc.Namespace) {
			b.list = append(b.list, vs)
		}
	}
	slices.SortStableFunc(b.list, func(a, b *value.VirtualService) int { return g.sc.Reach(a) - g.sc.Reach(b) })
	if g.bound == nil {
		g.bound = map[string]*boundServices{}
	}
	g.bound[gateway] = b
	return b
}

// shared are the hosts that a server and a VirtualService have in common: of a name and a pattern that covers it, the
// narrower.
func sharedHosts(s *server, vs *value.VirtualService) []string {
	var out []string
	add := func(host string) {
		if host = strings.ToLower(host); !slices.Contains(out, host) {
			out = append(out, host)
		}
	}
	for _, h := range s.Hosts {
		ns, host := h.Namespace, h.Host
		if ns != "*" && ns != vs.Namespace {
			continue
		}
		for _, o := range vs.Hosts {
			switch {
			case value.HostMatches(o, host):
				add(host)
			case value.HostMatches(host, o):
				add(o)
			}
		}
	}
	return out
}

// listener returns the one of all servers at a port; nil if none of them leads anywhere.
func (g *scratchGateways) listener(p *scratchPort) *encodecache.Entry {
	k := gen.GatewayListenerKey{Bind: p.bind, Port: p.number, ProxyProtocol: g.n.Mesh.ProxyProtocol}
	if k.Bind == "" {
		k.Bind = "0.0.0.0"
		if !g.sc.Traits.IPv4 && g.sc.Traits.IPv6 {
			k.Bind = "::"
		}
	}
	var chains []gen.GatewayChainKey
	taken, plain := map[string]struct{}{}, false
	for _, s := range p.servers {
		if !s.Port.Protocol.IsHTTP() {
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
		c.Access = accessOf(g.outbound, g.n, g.sc)
		if f := g.tables.chains.Get(c); len(f.Bytes()) > 0 { // else it is left out
			k.TLS = k.TLS || c.ServerNames != "" || c.TLS != nil
			parts = append(parts, f)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return encodecache.NewComposite(
		xdstype.ListenerURL,
		k.Name(),
		g.tables.listeners.Get(k),
		slices.Values(parts),
	)
}

// httpChain returns the chain of an HTTP server, or of an HTTPS server that terminates TLS.
func (g *scratchGateways) httpChain(l gen.GatewayListenerKey, s *server,
	tls *value.ServerTLS) gen.GatewayChainKey {
	k := gen.GatewayChainKey{
		Mesh: g.n.Mesh.HTTP, Filters: g.sc.Traits.Filters, HTTP10: g.sc.Traits.HTTP10,
		GRPCWeb:   s.Port.Protocol == value.GRPCWeb,
		TLS:       tls,
		RouteName: s.route, StatPrefix: "outbound_" + l.Name(),
	}
	if tls != nil {
		k.Servers = g.n.Mesh.Servers
		k.ServerNames, k.ServerName = gen.ServerNames(s.sniHosts()), s.Name
	}
	return k
}

// chains returns the chains of a server that is no plain HTTP. taken are the SNI names of the routes of servers that
// pass TLS through.
func (g *scratchGateways) chains(l gen.GatewayListenerKey, s *server,
	taken map[string]struct{}) []gen.GatewayChainKey {
	switch {
	case s.terminatesHTTPS():
		if !take(taken, s.sniNames()) {
			return nil
		}
		return []gen.GatewayChainKey{g.httpChain(l, s, s.TLS)}
	case s.passthrough():
		return g.passthroughChains(s, taken)
	}
	tcp, ok := g.tcpRoute(s)
	if !ok {
		return nil
	}
	k := gen.GatewayChainKey{TCP: tcp}
	if s.TLS != nil {
		k.TLS, k.Servers, k.ServerNames, k.Filters = s.TLS, g.n.Mesh.Servers, gen.ServerNames(s.sniHosts()),
			g.sc.Traits.Filters&gen.TCPExtensions()
	}
	return []gen.GatewayChainKey{k}
}

// tcpRoute returns what the first VirtualService with a TCP route for a server forwards to.
func (g *scratchGateways) tcpRoute(s *server) (gen.TCPProxyKey, bool) {
	for _, vs := range g.boundTo(s.gateway).list {
		if !takesScratch(s, vs) {
			continue
		}
		for _, r := range vs.TCP {
			matches := len(r.Matches) == 0 || slices.ContainsFunc(r.Matches, s.matches)
			if matches && len(r.Destinations) > 0 {
				return g.forward(s, vs, r.Destinations), true
			}
		}
	}
	return gen.TCPProxyKey{}, false
}

// passthroughChains returns those of the TLS routes for a server: one for each match, by its SNI names.
func (g *scratchGateways) passthroughChains(s *server, taken map[string]struct{}) []gen.GatewayChainKey {
	var out []gen.GatewayChainKey
	for _, vs := range g.boundTo(s.gateway).list {
		if !takesScratch(s, vs) {
			continue
		}
		for _, r := range vs.TLS {
			for _, m := range r.Matches {
				if len(r.Destinations) == 0 || !s.matches(m) || !take(taken, m.ServerNames) {
					continue
				}
				out = append(out, gen.GatewayChainKey{ServerNames: gen.ServerNames(m.ServerNames),
					TCP: g.forward(s, vs, r.Destinations)})
			}
		}
	}
	return out
}

// takes reports whether a server has a host in common with a VirtualService.
func takesScratch(s *server, vs *value.VirtualService) bool {
	return slices.ContainsFunc(s.Hosts, func(h value.ServerHost) bool {
		ns, host := h.Namespace, h.Host
		return (ns == "*" || ns == vs.Namespace) && slices.ContainsFunc(vs.Hosts, func(o string) bool {
			return value.HostMatches(host, o) || value.HostMatches(o, host)
		})
	})
}

// forward returns where the destinations of a TCP or TLS route lead.
func (g *scratchGateways) forward(s *server, vs *value.VirtualService,
	routes []value.WeightedDestination) gen.TCPProxyKey {
	port := &value.Port{Name: s.Port.Name, Number: s.Port.Number, Protocol: s.Port.Protocol}
	return g.outbound.View(g.n, g.sc).Routed(vs, routes, port).TCP
}

// scratchHost is a virtual host of a gateway in the making.
type scratchHost struct {
	port     int
	routes   []gen.RoutesKey
	gateways []string // from which each of the routes comes
	redirect bool
}

// routeConfiguration returns the one that a few servers share: for each host that they and VirtualServices have in
// common, the routes of all of these, one after the other.
func (g *scratchGateways) routeConfiguration(name string, servers []*server) *encodecache.Entry {
	hosts := map[string]*scratchHost{}
	known := map[scratchBound]*gen.RoutesKey{}
	for _, s := range servers {
		for _, vs := range g.boundTo(s.gateway).list {
			shared := sharedHosts(s, vs)
			if len(shared) == 0 {
				continue
			}
			k := g.routesOf(known, s, vs)
			if k == nil {
				continue
			}
			for _, h := range shared {
				at := hostAt(hosts, h, s)
				at.routes, at.gateways = append(at.routes, *k), append(at.gateways, s.gateway)
			}
		}
		if s.Redirect {
			for _, h := range s.sniHosts() {
				hostAt(hosts, strings.ToLower(h), s).redirect = true
			}
		}
	}
	header := g.outbound.Routes.Headers.Get(gen.RouteConfigurationKey{Name: name})
	if len(hosts) == 0 {
		return outbound.Compose(name, header, outbound.VirtualHosts{},
			g.tables.blackhole.Get(gen.BlackholeKey{Port: servers[0].Port.Number}))
	}
	return outbound.Compose(name, header, g.virtualHosts(hosts), nil)
}

func hostAt(hosts map[string]*scratchHost, host string, s *server) *scratchHost {
	if hosts[host] == nil {
		hosts[host] = &scratchHost{port: s.Port.Number}
	}
	hosts[host].redirect = hosts[host].redirect || s.Redirect
	return hosts[host]
}

// scratchBound is a VirtualService as one Gateway has it.
type scratchBound struct {
	gateway string
	service *value.VirtualService
}

// routesOf returns the Key of the routes that a VirtualService has at a server's Gateway; nil if it has none. In one
// route configuration it is the same for all servers of the Gateway.
func (g *scratchGateways) routesOf(known map[scratchBound]*gen.RoutesKey, s *server,
	vs *value.VirtualService) *gen.RoutesKey {
	id := scratchBound{s.gateway, vs}
	if k, ok := known[id]; ok {
		return k
	}
	known[id] = nil
	port := s.Port.Number
	if refused, routed := g.sc.Verdicts(vs, port, s.gateway); routed {
		to := (&step{tables: g.tables, outbound: g.outbound, n: g.n, sc: g.sc}).destinationsOf(vs)
		known[id] = &gen.RoutesKey{Service: vs, Port: port, Refused: refused, Destinations: to, TLS: s.TLS != nil}
	}
	return known[id]
}

// virtualHosts encodes hosts; those with the same routes of the same Gateways are one virtual host, named after the
// most specific.
func (g *scratchGateways) virtualHosts(hosts map[string]*scratchHost) outbound.VirtualHosts {
	groups := map[routesGroup][]string{}
	for _, h := range slices.SortedFunc(maps.Keys(hosts), bySpecificity) {
		at := hosts[h]
		group := routesGroup{g.tables.listRoutes(at.routes), at.redirect, strings.Join(at.gateways, " ")}
		groups[group] = append(groups[group], h)
	}
	items := make([]chunked.Item[*encodecache.Fragment], 0, len(groups))
	for group, names := range groups {
		k := gen.VirtualHostKey{
			Host: names[0], Port: hosts[names[0]].port, Domains: strings.Join(names, " "), Mesh: g.n.Mesh.Routes,
			RequireTLS: group.redirect, Bare: true,
		}
		if group.routes != nil {
			k.Routes, k.More = group.routes.RoutesKey, group.routes.Next
		}
		for l := group.routes; l != nil && g.sc.Traits.Filters&value.IstioFilters == 0; l = l.Next {
			if l.Service.RegexSize > g.outbound.RegexSize {
				k.RegexSize = g.outbound.RegexSize
			}
		}
		items = append(items, chunked.Item[*encodecache.Fragment]{Key: names[0], Value: g.outbound.Routes.Hosts.Get(k)})
	}
	return chunked.New(items)
}

// routesGroup are the hosts that have the same routes.
type routesGroup struct {
	routes   *gen.RoutesLink
	redirect bool
	gateways string
}

// bySpecificity orders names before patterns, longer ones first.
func bySpecificity(a, b string) int {
	if wa, wb := strings.HasPrefix(a, "*"), strings.HasPrefix(b, "*"); wa != wb {
		if wa {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
}
