package gateway

import (
	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/outbound"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// Router holds the servers of one class of routers (gateway proxies), and the listeners and route configurations made
// from them. Immutable: Tables.Advance returns the next one.
type Router struct {
	ports     chunked.Map[*portServers] // number
	asked     chunked.Map[*serverHost]  // by gateway, bucket of the host, and key: hosts of all admitted servers
	listeners chunked.Map[*listener]    // port, bind
	routes    chunked.Map[*routeConfig] // name
	made      resources
}

// resources are the listeners and route configurations of a router.
type resources struct{ listeners, routes classes.Section }

// listener is one listener: an address and a port with the filter chains of all servers there. Immutable.
type listener struct {
	open   chunked.Map[*server]    // by rank: servers of plain HTTP, which share the filter chain of the first
	units  chunked.Map[*chainUnit] // by rank and further parts: filter chains of all servers
	names  chunked.Map[*chainUnit] // by SNI name and key of the unit: units with SNI names other than their server's
	active chunked.Map[*chainUnit] // by key of the chain and key of the unit: units whose chain is in the listener
	// chains are sorted by what they match and not by their Gateway, so that the listener does not change when an older
	// or a younger Gateway replaces another one.
	chains chunked.Map[*encodecache.Fragment]
}

// chainUnit is one filter chain of a server.
type chainUnit struct {
	key         string // orders units: when two conflict, the first wins
	fragment    *encodecache.Fragment
	chain       string   // key of its filter chain
	serverNames []string // SNI names; if several units have the same name, only the first one matches it
}

// routeConfig is the route configuration of the servers that have the same route name. Immutable.
type routeConfig struct {
	name     string
	servers  chunked.Map[*server]     // by rank
	profiles chunked.Map[int]         // by gateway and profile: the number of servers
	asked    chunked.Map[*serverHost] // by bucket of the host and place: the hosts of its servers
	hosts    chunked.Map[string]      // by host: the group of its virtual host
	groups   chunked.Map[*hostRoutes] // by group and specificity of the host
	virtual  outbound.VirtualHosts
}

// hostRoutes is one host of a route configuration: the routes of all VirtualServices that name it for any of the
// servers, in order.
type hostRoutes struct {
	host string
	// group is equal for hosts that have the same routes of the same Gateways. The hosts of a group are one virtual
	// host.
	group    string
	port     int
	redirect bool
	routes   *gen.RoutesLink
}
