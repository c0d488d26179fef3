package snapshot

import (
	"slices"

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

// NewEndpointSet makes the set of endpoints in canonical order; nil of none.
func NewEndpointSet(endpoints []*value.Endpoint) *EndpointSet {
	if len(endpoints) == 0 {
		return nil
	}
	return &EndpointSet{Endpoints: endpoints}
}

// Set returns the endpoints of a service, or nil.
func (t *EndpointTable) Set(s value.ServiceKey) *EndpointSet {
	set, _ := t.sets.Get(s.String())
	return set
}

// Workload returns the pod or WorkloadEntry at an address, or nil.
func (t *EndpointTable) Workload(address string) *value.Workload {
	w, _ := t.workloads.Get(address)
	return w
}

// Moved returns the addresses that one of two sets of a service has and the other has not, or has with other ports or
// labels. Either may be nil.
func (s *EndpointSet) Moved(old *EndpointSet) []string {
	a, b := old.All(), s.All()
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	before := map[string]*value.Endpoint{}
	for _, e := range a {
		for _, addr := range e.Addresses {
			before[addr] = e
		}
	}
	var out []string
	for _, e := range b {
		for _, addr := range e.Addresses {
			if had, ok := before[addr]; !ok || had.Identity != e.Identity || !slices.Equal(had.Ports, e.Ports) {
				out = append(out, addr)
			}
			delete(before, addr)
		}
	}
	for addr := range before {
		out = append(out, addr)
	}
	return out
}

// All returns the endpoints of a set, which may be nil.
func (s *EndpointSet) All() []*value.Endpoint {
	if s == nil {
		return nil
	}
	return s.Endpoints
}
