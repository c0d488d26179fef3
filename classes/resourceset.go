package classes

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// Section is the resources of one type: a sorted, persistent list by name. Equal pointers in two Sections mean equal
// resources; different pointers mean nothing: content versions decide what is sent.
type Section = chunked.Map[*encodecache.Entry]

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

	// Assignments are the endpoint assignments that EDS clusters name, by that name; Groups are the same by service.
	Assignments chunked.Map[*Assignment]
	Groups      chunked.Map[*AssignmentGroup]
}

// AssignmentGroup is the assignments of one service.
type AssignmentGroup struct{ Members []*Assignment }

// AssignmentsOf returns the endpoint assignments that the endpoints of a service go into.
func (w *ResourceSet) AssignmentsOf(s value.ServiceKey) []*Assignment {
	if g, ok := w.Groups.Get(s.String()); ok {
		return g.Members
	}
	return nil
}
