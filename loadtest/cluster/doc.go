// Package cluster is a mesh in a Kubernetes API server, for any control plane that reads one, and the edits that load
// tests make there.
//
//	mesh.Objects ──► dressed as real ones are ──► sync ──► Namespaces, Nodes, ServiceAccounts, Services, Pods with
//	                                                       status, EndpointSlices, Istio's objects; ConfigMap
//	                                                       loadtest/shape
//	mesh.Change  ──► the same, one write after the other; the moment is that before the request that carries the number
//
// Nothing runs behind it: no kubelet, no controllers. So the EndpointSlices are written here, under a name of their own
// as their manager; where controllers run, they find Nodes without a kubelet and make slices themselves.
//
// Everything that is made has a label, pilotd.io/loadtest, and an annotation that says its content: a second Populate
// writes what differs, removes what is too much, and leaves the rest; Delete removes all that has the label. What has
// the name of an object of the mesh but not the label is an error, and is left alone.
package cluster
