package gateway

import (
	"slices"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/checked"
)

// Tables hold the listeners and route configurations of routers. Their virtual hosts stand among those of sidecars.
// Safe for concurrent use.
type Tables struct {
	listeners checked.Table[gen.GatewayListenerKey, encodecache.Fragment]
	chains    checked.Table[gen.GatewayChainKey, encodecache.Fragment]
	routes    *encodecache.Table[gen.RoutesLink, gen.RoutesLink]
	blackhole checked.Table[gen.BlackholeKey, encodecache.Fragment]
	routers   *memory
}

// NewTables makes empty Tables. What cannot be sent is noted in f.
func NewTables(f *checked.Faults) Tables {
	return Tables{
		listeners: checked.Fragments(f, "listener", gen.EncodeGatewayHeader),
		chains:    checked.Fragments(f, "filter chain", gen.EncodeGatewayChain),
		routes:    encodecache.NewTable(func(k gen.RoutesLink) *gen.RoutesLink { return &k }),
		blackhole: checked.Fragments(f, "virtual host", gen.EncodeBlackhole),
		routers:   &memory{},
	}
}

// Sizes returns how many Keys each table holds, by the table.
func (t *Tables) Sizes() map[string]int {
	return map[string]int{"listeners": t.listeners.Len(), "chains": t.chains.Len(), "routes": t.routes.Len(),
		"blackhole": t.blackhole.Len(), "routers": t.routers.Len()}
}

// listRoutes interns a list of routes; nil for none.
func (t *Tables) listRoutes(routes []gen.RoutesKey) (out *gen.RoutesLink) {
	for _, k := range slices.Backward(routes) {
		out = t.routes.Get(gen.RoutesLink{RoutesKey: k, Next: out})
	}
	return out
}
