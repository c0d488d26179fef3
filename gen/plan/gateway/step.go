package gateway

import (
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/outbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/gen/plan/section"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// step brings a router from one Snapshot to the next. It lives for one computation.
type step struct {
	tables   *Tables
	outbound *outbound.Tables
	sc       *scope.Scope
	old, n   *snapshot.Snapshot
	was      *Router
	Router   // what becomes of it

	edits struct{ listeners, routes section.Edits }

	listenerEdits map[bindPort]*listenerEdit
	routeEdits    map[string]*routesEdit
	memo          map[boundService]*gen.RoutesKey
}

// listenerEdit is what changes of one listener.
type listenerEdit struct {
	open  chunked.Edits[*server]
	units chunked.Edits[*chainUnit]
}

// routesEdit is what changes of one routeConfig.
type routesEdit struct {
	changes []serverChange
	hosts   map[string]struct{} // whose routes may be others
}

// boundService is a VirtualService as one Gateway has it, in one route configuration.
type boundService struct {
	route, gateway string
	service        *value.VirtualService
}

// bears reports whether a VirtualService, which may be nil, can have a part in the router: it is bound to a Gateway and
// the router may see it.
func (s *step) bears(vs *value.VirtualService) bool {
	return vs != nil && snapshot.BoundToGateways(vs) && vs.Export.VisibleTo(s.sc.Namespace)
}
