package classes

import (
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Class is a class of proxies that all get the same resources. A class is one pointer for its whole life, which ends
// with its last proxy. Immutable.
type Class struct {
	// Name is a short readable form, for logs and metrics: "sidecar shop web.shop:8080 #12".
	Name string
	// Type is the type of its proxies.
	Type value.NodeType
}

// Endpoints are the newest EndpointTable and the services whose endpoints differ from the one before.
type Endpoints struct {
	Table    *snapshot.EndpointTable
	Services []value.ServiceKey
}

// Sink receives what a planner computes. The planner's goroutines call its methods, which must not block: a shard only
// merges what it gets into its slots.
type Sink interface {
	// Assigned says that the proxy id belongs to class c, whose ResourceSet is w. The planner calls it once after
	// Attach, and again when a change moves the proxy to another class.
	Assigned(id uint64, c *Class, w *ResourceSet)
	// Advanced passes the new ResourceSets of the classes that a change affects, together with the changed endpoints
	// that need these ResourceSets, so that a receiver gets both at once.
	Advanced(sets map[*Class]*ResourceSet, e Endpoints)
	// EndpointsChanged passes the newest EndpointTable and the services whose endpoints differ from the one before.
	// Changes that need a new ResourceSet (a first endpoint, a new service account) come with Advanced instead.
	EndpointsChanged(t *snapshot.EndpointTable, services []value.ServiceKey)
}
