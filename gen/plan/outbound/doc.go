// Package outbound makes what the proxies of a Scope need for the calls that they make: clusters, listeners and routes.
//
//	Scope, Snapshot ─┬─ ClustersOf, StaticClusters ──────────────────► clusters, and the endpoints that they ask for
//	                 ├─ AddressListeners, WildcardListeners ─────────► listeners, from the service ports at each address
//	                 └─ VirtualHostOf, RouteConfiguration, Sniffed… ─► virtual hosts, and what they are joined to
//
// Each function makes one unit: the clusters of a service, the listeners of a port, a virtual host. A unit is a
// function of the Snapshot and the Scope alone, so that whoever knows which units a change affects makes these anew and
// keeps the others. What a unit is made of is found in the Tables by its Key, for all Scopes.
//
// The Tables are safe for concurrent use; a function blocks only while another goroutine makes the value of the same
// Key.
package outbound
