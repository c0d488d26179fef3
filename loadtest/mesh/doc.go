// Package mesh makes meshes to put load on a control plane with: raw Kubernetes and Istio objects of a given shape, the
// nodes of the proxies that run in them, and what edits do to them.
//
//	Shape ──► Mesh ──► Objects: Namespaces, Nodes, Services, EndpointSlices, VirtualServices, DestinationRules, Pods,
//	                            Gateways, Sidecars, ServiceEntries, WorkloadEntries
//	                   Node(i), GatewayNode(i): what a proxy says of itself
//	                   Live ──► Edit ──► Change: the objects that an edit writes, and which of them says its number
//	                   Editor: the same, written by a Writer
//
// A Mesh is a function of its Shape, seed included: every object and every node can be made by itself, in any process,
// and is the same. As in a real mesh no two workloads are alike: each has labels and a pod template hash of its own.
//
// Edits number themselves in what they write, so that whoever receives a resource made of it knows which edit it is: an
// address out of 198.18.0.0/16, or a path.
package mesh
