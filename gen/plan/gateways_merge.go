package plan

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// gatewayView makes what one class of routers has from one Snapshot. It lives for one computation.
type gatewayView struct {
	n      *snapshot.Snapshot
	sc     *Scope
	tables *Tables

	bound    map[string]*boundServices // by Gateway, once asked for
	services []*value.Service          // of the router itself, once asked for
}

// gatewayServer is one server of a Gateway, at one port of the router's own.
type gatewayServer struct {
	*networking.Server
	// gateway is "namespace/name".
	gateway  string
	protocol value.Protocol
	// port is where the router listens; Server.Port is where clients call.
	port int
	// route is the name of its route configuration; empty if it serves no HTTP.
	route string
}

// gatewayPort is one bind address and port with all servers there.
type gatewayPort struct {
	number  int
	bind    string
	servers []*gatewayServer
}

// mergedGateways are all servers of a router.
type mergedGateways struct {
	ports      []*gatewayPort
	byRoute    map[string][]*gatewayServer
	routeNames []string

	plain  map[int]*gatewayServer    // the first server of each port whose first is plain text
	used   map[int]bool              // the ports with any
	joined map[bindPort]bool         // where others than the first server joined one with TLS
	names  map[sniName]struct{}      // the SNI names that are taken
	at     map[bindPort]*gatewayPort // by address
}

type bindPort struct {
	bind string
	port int
}

type sniName struct {
	bindPort
	host string
}

// merge merges the servers of all Gateways that select the router, the oldest Gateway's first. Of servers that cannot stand together at one
// port the first wins.
func (g *gatewayView) merge() *mergedGateways {
	m := &mergedGateways{
		byRoute: map[string][]*gatewayServer{}, plain: map[int]*gatewayServer{}, used: map[int]bool{}, joined: map[bindPort]bool{},
		names: map[sniName]struct{}{}, at: map[bindPort]*gatewayPort{},
	}
	var selected []*value.Gateway
	for gw := range g.n.Gateways() {
		if g.sc.Labels.Contains(gw.Spec.GetSelector()) {
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
		for _, s := range gw.Spec.GetServers() {
			m.add(g.server(gw, s))
		}
	}
	return m
}

// server is a server of a Gateway at the router's own port.
func (g *gatewayView) server(gw *value.Gateway, s *networking.Server) *gatewayServer {
	out := &gatewayServer{Server: s, gateway: gw.Namespace + "/" + gw.Name, protocol: serverProtocol(s.GetPort().GetProtocol())}
	out.port = g.ownPort(int(s.GetPort().GetNumber()))
	switch {
	case out.protocol.IsHTTP():
		out.route = "http." + strconv.Itoa(out.port)
	case out.terminatesHTTPS():
		out.route = strings.Join([]string{"https", strconv.Itoa(int(s.GetPort().GetNumber())), s.GetPort().GetName(), gw.Name, gw.Namespace}, ".")
	}
	if out.route != "" && s.GetBind() != "" {
		out.route += "." + s.GetBind()
	}
	return out
}

// serverProtocol reads the protocol of a Gateway's port.
func serverProtocol(name string) value.Protocol {
	for _, p := range []value.Protocol{value.HTTP, value.HTTP2, value.GRPC, value.GRPCWeb, value.HTTPS, value.TCP, value.TLS, value.Mongo, value.Redis, value.MySQL} {
		if strings.EqualFold(name, string(p)) {
			return p
		}
	}
	return value.TCP
}

func (s *gatewayServer) terminatesHTTPS() bool {
	return s.protocol == value.HTTPS && s.GetTls() != nil && !s.passthrough()
}

// passthrough reports whether the server leaves TLS to the backends.
func (s *gatewayServer) passthrough() bool {
	mode := s.GetTls().GetMode()
	return s.GetTls() != nil && (mode == networking.ServerTLSSettings_PASSTHROUGH || mode == networking.ServerTLSSettings_AUTO_PASSTHROUGH)
}

// ownPort is the port at which the router listens for calls to a port of its Service; that port itself if it has none.
func (g *gatewayView) ownPort(number int) int {
	const untranslated = "experimental.istio.io/disable-gateway-port-translation"
	if g.services == nil {
		g.services = []*value.Service{}
		for svc := range g.n.ServicesIn(g.sc.Namespace) {
			if len(svc.Selector) > 0 && svc.Registry == value.RegistryKubernetes && g.sc.Labels.Contains(svc.Selector) {
				g.services = append(g.services, svc)
			}
		}
		slices.SortFunc(g.services, OlderService)
	}
	for _, svc := range g.services {
		p := svc.PortByNumber(number)
		if _, ok := svc.Labels[untranslated]; p == nil || ok {
			continue
		}
		if p.TargetName == "" {
			return cmp.Or(p.TargetPort, p.Number)
		}
		if own := g.sc.Facts.namedPort(p.TargetName); own != 0 {
			return own
		}
	}
	return number
}

// add takes a server in, if it can stand beside those that are there.
func (m *mergedGateways) add(s *gatewayServer) {
	if s.GetTls() != nil && !m.claimNames(s) || !m.admits(s) {
		return
	}
	at := bindPort{s.GetBind(), s.port}
	if m.at[at] == nil {
		m.at[at] = &gatewayPort{number: s.port, bind: at.bind}
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

// admits decides by the first server of the port. Beside plain text stands HTTP, and anything at another address. Beside TLS stand servers
// with routes of their own, one at each address without TLS, if it comes before all others but the first.
func (m *mergedGateways) admits(s *gatewayServer) bool {
	if !m.used[s.port] {
		m.used[s.port] = true
		if s.GetTls() == nil || s.protocol.IsHTTP() {
			m.plain[s.port] = s
		}
		return true
	}
	if plain := m.plain[s.port]; plain != nil {
		return plain.GetBind() != s.GetBind() || plain.mixes(s)
	}
	if s.route != "" && m.byRoute[s.route] != nil {
		return false
	}
	at := bindPort{s.GetBind(), s.port}
	first := !m.joined[at]
	m.joined[at] = true
	return first || s.GetTls() != nil
}

// mixes reports whether two servers can share a port in plain text.
func (s *gatewayServer) mixes(o *gatewayServer) bool {
	return s.protocol.IsHTTP() && o.protocol.IsHTTP()
}

// claimNames takes the SNI names of a server; it takes none if one is taken already.
func (m *mergedGateways) claimNames(s *gatewayServer) bool {
	at := bindPort{s.GetBind(), s.port}
	for _, h := range s.GetHosts() {
		if _, ok := m.names[sniName{at, h}]; ok {
			return false
		}
	}
	for _, h := range s.GetHosts() {
		m.names[sniName{at, h}] = struct{}{}
	}
	return true
}

// sniHosts are the host names of a server, without namespaces.
func (s *gatewayServer) sniHosts() []string {
	out := make([]string, 0, len(s.GetHosts()))
	for _, h := range s.GetHosts() {
		_, host := serverHost(h)
		out = append(out, host)
	}
	return out
}

// serverHost splits a host of a server into the namespace whose VirtualServices it takes, "*" for all, and the host.
func serverHost(h string) (namespace, host string) {
	ns, host, ok := strings.Cut(h, "/")
	if !ok {
		return "*", h
	}
	return ns, host
}

// boundServices are the VirtualServices bound to a Gateway that the router's namespace may see, in order of precedence.
type boundServices struct {
	list   []*value.VirtualService
	byHost map[string][]int // places in list, by host or pattern
}

func (g *gatewayView) boundTo(gateway string) *boundServices {
	if b, ok := g.bound[gateway]; ok {
		return b
	}
	b := &boundServices{byHost: map[string][]int{}}
	for vs := range g.n.VirtualServicesOfGateway(gateway) {
		if vs.Export.VisibleTo(g.sc.Namespace) {
			b.list = append(b.list, vs)
		}
	}
	slices.SortStableFunc(b.list, func(a, b *value.VirtualService) int { return g.sc.reach(a) - g.sc.reach(b) })
	for i, vs := range b.list {
		for _, h := range vs.Spec.GetHosts() {
			b.byHost[h] = append(b.byHost[h], i)
		}
	}
	if g.bound == nil {
		g.bound = map[string]*boundServices{}
	}
	g.bound[gateway] = b
	return b
}

// virtualServices are those bound to a server's Gateway that may have a host in common with the server, in order of precedence. They are
// looked up by host, for Gateways with a server for each of thousands of hosts are not rare.
func (g *gatewayView) virtualServices(s *gatewayServer) []*value.VirtualService {
	b := g.boundTo(s.gateway)
	var places []int
	for _, host := range s.sniHosts() {
		if strings.HasPrefix(host, "*") {
			return b.list
		}
		for p := range snapshot.Patterns(host) {
			places = append(places, b.byHost[p]...)
		}
	}
	slices.Sort(places)
	var out []*value.VirtualService
	for _, i := range slices.Compact(places) {
		out = append(out, b.list[i])
	}
	return out
}

// shared are the hosts that a server and a VirtualService have in common: of a name and a pattern that covers it, the narrower.
func (s *gatewayServer) shared(vs *value.VirtualService) []string {
	var out []string
	add := func(host string) {
		if host = strings.ToLower(host); !slices.Contains(out, host) {
			out = append(out, host)
		}
	}
	for _, h := range s.GetHosts() {
		ns, host := serverHost(h)
		if ns != "*" && ns != vs.Namespace {
			continue
		}
		for _, o := range vs.Spec.GetHosts() {
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
