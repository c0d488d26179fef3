package gateway

import (
	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/outbound"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// Router is what the listeners and route configurations of one class of routers are made of. Immutable. Tables.Advance
// makes the next one.
type Router struct {
	ports     chunked.Map[*portServers] // number
	asked     chunked.Map[*serverHost]  // gateway, bucket of the host, key: of all servers that have their port
	listeners chunked.Map[*listener]    // port, bind
	routes    chunked.Map[*routeConfig] // name
	made      resources
}

// resources are the listeners and route configurations of a router.
type resources struct{ listeners, routes classes.Section }

// listener is what listens at one address and port: the filter chains of all servers there. Immutable.
type listener struct {
	open   chunked.Map[*server]    // rank: those that serve plain HTTP, and share the chain of the first
	units  chunked.Map[*chainUnit] // rank and further parts: all chains that servers want
	names  chunked.Map[*chainUnit] // SNI name, key of the unit: units with names besides those of their server
	active chunked.Map[*chainUnit] // key of the chain, key of the unit: those that the listener has
	// chains are sorted by what they match, and not by whose they are: an older or a younger Gateway makes no other
	// listener.
	chains chunked.Map[*encodecache.Fragment]
}

// chainUnit is one filter chain of a server.
type chainUnit struct {
	key         string // orders units as conflicts are decided
	fragment    *encodecache.Fragment
	chain       string   // key among the chains
	serverNames []string // SNI names; of the units that have the same name the first gets it
}

// routeConfig is the route configuration of the servers that share it. Immutable.
type routeConfig struct {
	name     string
	servers  chunked.Map[*server]     // rank
	profiles chunked.Map[int]         // gateway, profile: how many of the servers
	asked    chunked.Map[*serverHost] // bucket of the host, place
	hosts    chunked.Map[string]      // host: its group
	groups   chunked.Map[*hostRoutes] // group, specificity of the host
	virtual  outbound.VirtualHosts
}

// hostRoutes is one host of a route configuration: the routes of all VirtualServices that have it at any of the
// servers, one after the other.
type hostRoutes struct {
	host string
	// group tells hosts apart that do not have the same routes of the same Gateways; those that do are one virtual
	// host.
	group    string
	port     int
	redirect bool
	routes   *gen.RoutesLink
}
