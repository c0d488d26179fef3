package snapshot

import (
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// EndpointTable is an immutable view of the endpoints of every service and of all workloads.
type EndpointTable struct {
	// Revision grows with each table.
	Revision uint64

	sets      chunked.Map[*EndpointSet] // by ServiceKey.String()
	workloads chunked.Map[*value.Workload]
}

// EndpointSet is the endpoints of one service. Equal sets are one pointer.
type EndpointSet struct {
	// Endpoints in a canonical order.
	Endpoints []*value.Endpoint
}

// Set is the endpoints of a service, or nil.
func (t *EndpointTable) Set(s value.ServiceKey) *EndpointSet {
	set, _ := t.sets.Get(s.String())
	return set
}

// Workload is the pod or WorkloadEntry at an address, or nil.
func (t *EndpointTable) Workload(address string) *value.Workload {
	w, _ := t.workloads.Get(address)
	return w
}
