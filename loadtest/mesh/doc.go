// Package mesh generates meshes to put load on a control plane with: Kubernetes and Istio objects of a given shape, the
// nodes of the proxies in them, and the effect of edits on them.
//
//	Shape ──► Mesh ──► Objects: Namespaces, Nodes, Services, EndpointSlices, VirtualServices, DestinationRules, Pods,
//	                            Gateways, Sidecars, ServiceEntries, WorkloadEntries
//	                   Node(i), GatewayNode(i): the node that a proxy sends
//	                   Live ──► Edit ──► Change: the objects that an edit writes, and which of them carries its number
//	                   Editor: the same, written by a Writer
//
// A Mesh is a function of its Shape, which includes the seed: every object and every node can be generated alone, in
// any process, and is always the same. As in a real mesh no two workloads are alike: each has its own labels and pod
// template hash.
//
// Edits write their number into an object, as an address from 198.18.0.0/16 or as a path. So whoever receives a
// resource made from the object knows which edit it shows.
package mesh
