package plan

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot"
)

// gatewayTables hold the listeners and route configurations of routers. Their virtual hosts stand among those of sidecars.
type gatewayTables struct {
	listeners *encodecache.Table[gen.GatewayListenerKey, encodecache.Fragment]
	chains    *encodecache.Table[gen.GatewayChainKey, encodecache.Fragment]
	routes    *encodecache.Table[gen.RoutesLink, gen.RoutesLink]
	blackhole *encodecache.Table[int, encodecache.Fragment]
}

func newGatewayTables() gatewayTables {
	return gatewayTables{
		listeners: encodecache.NewTable(func(k gen.GatewayListenerKey) *encodecache.Fragment {
			return encodecache.NewFragment(gen.Marshal(gen.GatewayHeader(k)))
		}),
		chains: encodecache.NewTable(func(k gen.GatewayChainKey) *encodecache.Fragment {
			return encodecache.NewFragment(gen.GatewayChainField(k))
		}),
		routes: encodecache.NewTable(func(k gen.RoutesLink) *gen.RoutesLink { return &k }),
		blackhole: encodecache.NewTable(func(port int) *encodecache.Fragment {
			return encodecache.NewFragment(gen.BlackholeField(port))
		}),
	}
}

// gatewayConfig are the listeners and route configurations of a router: of all Gateways whose selector its labels satisfy, merged.
func (t *Tables) gatewayConfig(n *snapshot.Snapshot, sc *Scope) (listeners, routes []*encodecache.Entry) {
	g := &gatewayView{n: n, sc: sc, tables: t}
	m := g.merge()
	for _, p := range m.ports {
		if l := g.listener(p); l != nil && sc.Traits.MayBind(p.number) {
			listeners = append(listeners, l)
		}
	}
	for _, name := range m.routeNames {
		routes = append(routes, g.routeConfiguration(name, m.byRoute[name]))
	}
	return listeners, routes
}
