package plan

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// routeTables hold the sidecar route configurations and their virtual hosts.
type routeTables struct{}

func newRouteTables() routeTables { return routeTables{} }

// VirtualHosts are the encoded virtual hosts of one route configuration, in the order in which they are sent.
type VirtualHosts = chunked.Map[*encodecache.Fragment]

// virtualHost is one of them: the key that orders it, unique in its route configuration, and the encoded field.
type virtualHost struct {
	key      string
	fragment *encodecache.Fragment
}

// virtualHostsOf are the virtual hosts of one host (a service's, or one that only a VirtualService names, patterns included) in the route
// configuration of a shared HTTP port.
func (t *Tables) virtualHostsOf(n *snapshot.Snapshot, sc *Scope, port int, host string) []virtualHost {
	return nil
}

// relatedHosts are the hosts, beside host itself, whose virtual hosts depend on the service or VirtualServices of host: those that could
// claim one of its domains.
func (t *Tables) relatedHosts(n *snapshot.Snapshot, host string) []string { return nil }

// routeConfiguration is the one of a shared HTTP port: the header, the catch-all virtual host of the outbound traffic policy, and hosts.
func (t *Tables) routeConfiguration(n *snapshot.Snapshot, sc *Scope, port int, hosts VirtualHosts) *encodecache.Entry {
	return nil
}

// sniffedRoutes are the route configurations "host:port" of a service's ports whose protocol is sniffed at its own address.
func (t *Tables) sniffedRoutes(n *snapshot.Snapshot, sc *Scope, host string) []*encodecache.Entry {
	return nil
}

// EmptyRoute is the answer for a name that a sidecar asks for and that does not exist.
func (t *Tables) EmptyRoute(name string) *encodecache.Entry { return nil }
