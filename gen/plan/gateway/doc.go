// Package gateway makes the listeners and route configurations of routers, of the Gateways that select them and the
// VirtualServices that are bound to these.
//
//	Gateways ─► servers ─► ports: who stands beside whom ─┬─► listeners ─ units ─► filter chains
//	                                                      └─► routes ─ hosts ─► groups ─► virtual hosts
//
// Tables.Advance is the door: it brings a Router from one Snapshot to the next, and looks only at what a change
// touches: the servers of the Gateways that changed and what they conflict with, the hosts that a VirtualService has at
// any server, the chains that it has a part in. Whatever the way, a Router is what it would be from nothing. The
// clusters of routers, and the tables that hold their virtual hosts, are those of package outbound.
package gateway
