package scope

import (
	"github.com/pilotd/pilotd/snapshot"
)

// MeshGateway is the name under which VirtualServices bind to all sidecars.
const MeshGateway = "mesh"

// anyHostPort is the port on which VirtualServices have virtual hosts for all their hosts, whether a service there has
// the port or not.
const anyHostPort = 80

// hasService reports whether there is a service of a host.
func hasService(n *snapshot.Snapshot, host string) bool {
	for range n.ServicesOfHost(host) {
		return true
	}
	return false
}

// hasVirtualService reports whether a VirtualService names a host or pattern.
func hasVirtualService(n *snapshot.Snapshot, host string) bool {
	for range n.VirtualServicesOfHost(host) {
		return true
	}
	return false
}
