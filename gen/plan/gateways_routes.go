package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// gatewayHost is a virtual host of a gateway in the making.
type gatewayHost struct {
	port     int
	routes   []gen.RoutesKey
	gateways []string // from which each of the routes comes
	redirect bool
}

// routeConfiguration is the one that a few servers share: for each host that they and VirtualServices have in common, the routes of all of
// these, one after the other.
func (g *gatewayView) routeConfiguration(name string, servers []*gatewayServer) *encodecache.Entry {
	hosts := map[string]*gatewayHost{}
	known := map[boundService]*gen.RoutesKey{}
	for _, s := range servers {
		for _, vs := range g.virtualServices(s) {
			shared := s.shared(vs)
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
		if s.GetTls().GetHttpsRedirect() {
			for _, h := range s.sniHosts() {
				hostAt(hosts, strings.ToLower(h), s).redirect = true
			}
		}
	}
	header := g.tables.routes.headers.Get(gen.RouteConfigurationKey{Name: name})
	if len(hosts) == 0 {
		return compose(name, header, VirtualHosts{}, g.tables.gateways.blackhole.Get(int(servers[0].GetPort().GetNumber())))
	}
	return compose(name, header, g.virtualHosts(hosts), nil)
}

func hostAt(hosts map[string]*gatewayHost, host string, s *gatewayServer) *gatewayHost {
	if hosts[host] == nil {
		hosts[host] = &gatewayHost{port: int(s.GetPort().GetNumber())}
	}
	hosts[host].redirect = hosts[host].redirect || s.GetTls().GetHttpsRedirect()
	return hosts[host]
}

// boundService is a VirtualService as one Gateway has it.
type boundService struct {
	gateway string
	service *value.VirtualService
}

// routesOf is the Key of the routes that a VirtualService has at a server's Gateway; nil if it has none. In one route configuration it is
// the same for all servers of the Gateway.
func (g *gatewayView) routesOf(known map[boundService]*gen.RoutesKey, s *gatewayServer, vs *value.VirtualService) *gen.RoutesKey {
	id := boundService{s.gateway, vs}
	if k, ok := known[id]; ok {
		return k
	}
	known[id] = nil
	port := int(s.GetPort().GetNumber())
	if refused, routed := g.sc.verdicts(vs, port, s.gateway); routed {
		known[id] = &gen.RoutesKey{Service: vs, Port: port, Refused: refused, Destinations: g.destinationsOf(vs), TLS: s.GetTls() != nil}
	}
	return known[id]
}

// destinationsOf is what there is to know of the hosts that a VirtualService routes to.
func (g *gatewayView) destinationsOf(vs *value.VirtualService) *gen.DestinationLink {
	var list *gen.DestinationLink
	for host := range distinct(snapshot.Destinations(vs)) {
		svc := g.destination(vs, host)
		if svc == nil {
			continue
		}
		d := gen.Destination{Host: host, Target: svc.ExternalName}
		if len(svc.Ports) == 1 {
			d.Port = svc.Ports[0].Number
		}
		if r := g.sc.Rule(g.n, svc); gen.Hashes(r) {
			d.Rule = r
		}
		if d != (gen.Destination{Host: host}) {
			list = g.tables.routes.destinations.Get(gen.DestinationLink{Destination: d, Next: list})
		}
	}
	return list
}

// destination is the service that a VirtualService means by host: that of its own namespace if the router may see it, else the one that the
// router means.
func (g *gatewayView) destination(vs *value.VirtualService, host string) *value.Service {
	svc := g.n.Service(value.ServiceKey{Host: host, Namespace: vs.Namespace})
	if svc != nil && svc.Export.VisibleTo(g.sc.Namespace) {
		return svc
	}
	return g.sc.Service(g.n, host)
}

// virtualHosts encodes hosts; those with the same routes of the same Gateways are one virtual host, named after the most specific.
func (g *gatewayView) virtualHosts(hosts map[string]*gatewayHost) VirtualHosts {
	groups := map[routesGroup][]string{}
	for _, h := range slices.SortedFunc(maps.Keys(hosts), bySpecificity) {
		at := hosts[h]
		group := routesGroup{g.list(at.routes), at.redirect, strings.Join(at.gateways, " ")}
		groups[group] = append(groups[group], h)
	}
	items := make([]chunked.Item[*encodecache.Fragment], 0, len(groups))
	for group, names := range groups {
		k := gen.VirtualHostKey{
			Host: names[0], Port: hosts[names[0]].port, Domains: strings.Join(names, " "), Mesh: g.n.Mesh, RequireTLS: group.redirect, Bare: true,
		}
		if group.routes != nil {
			k.Routes, k.More = group.routes.RoutesKey, group.routes.Next
		}
		items = append(items, chunked.Item[*encodecache.Fragment]{Key: names[0], Value: g.tables.routes.hosts.Get(k)})
	}
	return chunked.New(items)
}

// routesGroup are the hosts that have the same routes.
type routesGroup struct {
	routes   *gen.RoutesLink
	redirect bool
	gateways string
}

// list interns a list of routes; nil for none.
func (g *gatewayView) list(routes []gen.RoutesKey) (out *gen.RoutesLink) {
	for _, k := range slices.Backward(routes) {
		out = g.tables.gateways.routes.Get(gen.RoutesLink{RoutesKey: k, Next: out})
	}
	return out
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
