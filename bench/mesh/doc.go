// Package mesh makes meshes for benchmarks: raw Kubernetes and Istio objects of a given shape, and the nodes of the proxies that run in them.
//
//	Shape ──► Mesh ──► Events (Namespaces, Nodes, Services, Pods, EndpointSlices, VirtualServices, DestinationRules)
//	                   Node(i): what the sidecar of workload i says of itself
//	                   EndpointChange(n), RouteChange(n): the events of the n-th change
//
// A Mesh is a function of its Shape, seed included: every object and every node can be made by itself, in any process, and is the same.
// As in a real mesh no two workloads are alike: each has labels, a canonical name and a pod template hash of its own.
package mesh
