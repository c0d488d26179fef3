package scenario

import (
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// Edits makes changes that say their number, and returns when each was made. A later change of a service makes up for
// an earlier one. Numbers are from 1 to mesh.LastMark, and begin again after that.
type Edits interface {
	// Endpoint changes the endpoints of a service < Lanes.
	Endpoint(service, n int) (time.Time, error)
	Route(n int) (time.Time, error)
	Lanes() int
	// Restore undoes all.
	Restore() error
}

// RouteEdits are Edits that can also add a VirtualService and remove it again.
type RouteEdits interface {
	// AddRoute makes a VirtualService for the first service, or one of its own beside it, whose path says n;
	// RemoveRoute removes it, so that no client's routes say n any more.
	AddRoute(n int) (time.Time, error)
	RemoveRoute(n int) (time.Time, error)
}

// Restarts are Edits that can also replace pods, as the rolling restart of a deployment does.
type Restarts interface {
	// Replace puts a new pod in place of workload i: its name and its address (mesh.Address(n)) say n, in the Pod and
	// in the EndpointSlice of its service. A later Replace of i replaces that one.
	Replace(i, n int) (time.Time, error)
	// Successor is the node of the pod that Replace(i, n) makes.
	Successor(i, n int) *corev3.Node
}
