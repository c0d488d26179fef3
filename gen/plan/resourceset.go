package plan

import (
	"github.com/pilotd/pilotd/gen/plan/endpoints"
	"github.com/pilotd/pilotd/gen/plan/section"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// Section is the resources of one type.
type Section = section.Section

// Assignment is all that a ClusterLoadAssignment depends on but the endpoints themselves.
type Assignment = endpoints.Assignment

// Sections are the resources of each type, by the type's row.
type Sections []Section

// Of returns the section of a type; one that is not there is empty.
func (s Sections) Of(t xdstype.Type) Section {
	if int(t) >= len(s) {
		return Section{}
	}
	return s[t]
}

// Same reports whether s and o hold the same resources, pointer by pointer.
func (s Sections) Same(o Sections) bool {
	for t := range xdstype.Type(max(len(s), len(o))) {
		if !s.Of(t).Same(o.Of(t)) {
			return false
		}
	}
	return true
}

// ResourceSet is everything that the proxies of one class should have, computed from one Snapshot. Immutable. Endpoints
// are not in it: an Assignment is joined with an EndpointTable when it is sent.
type ResourceSet struct {
	// Revision is the revision of the Snapshot. ResourceSets of a class are published in the order of their revisions.
	Revision uint64

	// Sections are the resources that are ready made.
	Sections Sections

	// Assignments are the endpoint assignments that EDS clusters name, by that name; groups are the same by service.
	Assignments chunked.Map[*Assignment]
	groups      chunked.Map[*assignmentGroup]
}

// AssignmentsOf returns the endpoint assignments that the endpoints of a service go into.
func (w *ResourceSet) AssignmentsOf(s value.ServiceKey) []*Assignment {
	if g, ok := w.groups.Get(s.String()); ok {
		return g.members
	}
	return nil
}

type assignmentGroup struct{ members []*Assignment }

// Endpoints are the newest EndpointTable and the services whose endpoints differ from the last one.
type Endpoints struct {
	Table    *snapshot.EndpointTable
	Services []value.ServiceKey
}

// Sink receives what a Planner computes. Its methods are called by the planner's goroutines and must not block: a shard
// merges what it is given into its slots.
type Sink interface {
	// Assigned tells that the proxy id is of class c, whose ResourceSet is w: once after Attach, and again whenever a
	// change moves the proxy to another class.
	Assigned(id uint64, c *Class, w *ResourceSet)
	// Advanced gives the new ResourceSets of the classes that a change touched, and what changed of the endpoints that
	// needs them: whoever takes the one has the other.
	Advanced(sets map[*Class]*ResourceSet, e Endpoints)
	// EndpointsChanged gives the newest EndpointTable and the services whose endpoints differ from the last one. It is
	// not called for changes that need a ResourceSet first (a first endpoint, a new service account): those come with
	// Advanced.
	EndpointsChanged(t *snapshot.EndpointTable, services []value.ServiceKey)
}
