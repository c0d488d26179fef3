package plan

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Assignment is all that a ClusterLoadAssignment depends on but the endpoints themselves: service, port, subset and the settings that
// order and filter endpoints. Two Assignments with equal inputs are one pointer.
type Assignment struct {
	// Name is the name of the resource: the cluster's service_name.
	Name string
	// Service is whose endpoints they are.
	Service value.ServiceKey
}

// Entry is the resource for the endpoints in t, made on first use and shared by all that ask for the same set.
func (a *Assignment) Entry(t *snapshot.EndpointTable) *encodecache.Entry {
	panic("lead: to come")
}
