// Package mesh makes meshes to put load on a control plane with: raw Kubernetes and Istio objects of a given shape, and the nodes of the
// proxies that run in them.
//
//	Shape ──► Mesh ──► Objects (Namespaces, Nodes, Services, Pods, EndpointSlices, VirtualServices, DestinationRules)
//	                   Node(i): what the sidecar of workload i says of itself
//	                   Slice, Route: the objects that changes edit
//
// A Mesh is a function of its Shape, seed included: every object and every node can be made by itself, in any process, and is the same.
// As in a real mesh no two workloads are alike: each has labels, a canonical name and a pod template hash of its own.
package mesh
