package classes

import (
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Class is one class of proxies: those that get the same resources. One pointer for the life of the class, which ends
// with its last proxy. Immutable.
type Class struct {
	// Name is a short readable form, for logs and metrics: "sidecar shop web.shop:8080 #12".
	Name string
	// Type is the kind of its proxies.
	Type value.NodeType
}

// Endpoints are the newest EndpointTable and the services whose endpoints differ from the last one.
type Endpoints struct {
	Table    *snapshot.EndpointTable
	Services []value.ServiceKey
}

// Sink receives what a planner computes. Its methods are called by the planner's goroutines and must not block: a shard
// merges what it is given into its slots.
type Sink interface {
	// Assigned tells that the proxy id is of class c, whose ResourceSet is w: once after Attach, and again whenever a
	// change moves the proxy to another class.
	Assigned(id uint64, c *Class, w *ResourceSet)
	// Advanced gives the new ResourceSets of the classes that a change affects, and what changed of the endpoints that
	// needs them: whoever takes the one has the other.
	Advanced(sets map[*Class]*ResourceSet, e Endpoints)
	// EndpointsChanged gives the newest EndpointTable and the services whose endpoints differ from the last one. It is
	// not called for changes that need a ResourceSet first (a first endpoint, a new service account): those come with
	// Advanced.
	EndpointsChanged(t *snapshot.EndpointTable, services []value.ServiceKey)
}
