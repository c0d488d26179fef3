package classes

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// Section holds the resources of one type: a sorted, persistent map by name. Equal pointers in two Sections mean equal
// resources. Different pointers mean nothing; what is sent is decided by comparing content versions.
type Section = chunked.Map[*encodecache.Entry]

// Sections are the resources of each type, indexed by the type's row.
type Sections []Section

// Of returns the section of a type; an empty one if it is missing.
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

// ResourceSet is everything that the proxies of one class should have, computed from one Snapshot, except endpoints: an
// Assignment is joined with an EndpointTable when it is sent. Immutable.
type ResourceSet struct {
	// Revision is the revision of the Snapshot. The ResourceSets of a class are published in the order of their
	// revisions.
	Revision uint64

	// Sections are the resources that need no endpoints.
	Sections Sections

	// Assignments are the endpoint assignments, by the name under which EDS clusters refer to them. Groups has the same
	// ones by service.
	Assignments chunked.Map[*Assignment]
	Groups      chunked.Map[*AssignmentGroup]
}

// AssignmentGroup is the assignments of one service.
type AssignmentGroup struct{ Members []*Assignment }

// AssignmentsOf returns the assignments that contain endpoints of a service.
func (w *ResourceSet) AssignmentsOf(s value.ServiceKey) []*Assignment {
	if g, ok := w.Groups.Get(s.String()); ok {
		return g.Members
	}
	return nil
}
