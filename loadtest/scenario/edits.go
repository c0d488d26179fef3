package scenario

import (
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// Edits makes changes that carry a number, and returns when each was made. A later change of a service replaces an
// earlier one. Numbers go from 1 to mesh.LastMark and then start again.
type Edits interface {
	// Endpoint changes the endpoints of a service < Lanes.
	Endpoint(service, n int) (time.Time, error)
	Route(n int) (time.Time, error)
	Lanes() int
	// Restore undoes all changes.
	Restore() error
}

// RouteEdits are Edits that can also add a VirtualService and remove it again.
type RouteEdits interface {
	// AddRoute creates a VirtualService, whose path carries n, for a service that has none. RemoveRoute deletes it,
	// after which no route of a client carries n.
	AddRoute(n int) (time.Time, error)
	RemoveRoute(n int) (time.Time, error)
}

// Restarts are Edits that can also replace pods, as the rolling restart of a deployment does.
type Restarts interface {
	// Replace puts a new pod in place of workload i. Its name and its address (mesh.Address(n)) carry n, in the Pod and
	// in the EndpointSlice of its service. A later Replace of i replaces that pod.
	Replace(i, n int) (time.Time, error)
	// Successor returns the node of the pod that Replace(i, n) makes.
	Successor(i, n int) *corev3.Node
}
