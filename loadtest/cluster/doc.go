// Package cluster writes a mesh into a Kubernetes API server, for any control plane that reads one, and makes the edits
// of load tests there.
//
//	mesh.Objects ──► dress: completed as real ones are ──► sync ──► Namespaces, Nodes, ServiceAccounts, Services, Pods
//	                                                                with status, EndpointSlices, Istio's objects;
//	                                                                ConfigMap loadtest/shape
//	mesh.Change  ──► the same, one write after the other; its moment is that before the request that carries the number
//
// No kubelets and no controllers run. So this package writes the EndpointSlices itself, with a manager name of its own.
// In a cluster with controllers, these would find Nodes without a kubelet and make slices themselves.
//
// Every object has the label pilotd.io/loadtest, and an annotation with a hash of its content: a second Populate writes
// only what differs, deletes what does not belong to the mesh, and leaves the rest. Delete removes every object with
// the label. An object with the name of one of the mesh but without the label is an error, and is left alone.
package cluster
