package plan

import (
	"github.com/pilotd/pilotd/snapshot/value"
)

// Proxy is what a client says about itself in its Node, parsed. Immutable after ParseNode.
type Proxy struct {
	// ID is the node id, "type~ip~pod.namespace~domain" for Envoy.
	ID        string
	Namespace string
	// Name is the pod's name.
	Name      string
	ClusterID string
	// Version is the ISTIO_VERSION that the client reports.
	Version   string
	Addresses []string
	Labels    value.Labels
	Locality  value.Locality
	Node      string // Kubernetes node, from NODE_NAME
	Network   string
	Account   string // SERVICE_ACCOUNT
	Traits    value.Traits
}

// Class is one class of proxies: all facts that their configuration may depend on. Classes are interned: equal facts, one pointer.
type Class struct {
	// Name is a short readable form, for logs and metrics.
	Name string
}
