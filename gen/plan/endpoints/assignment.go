package endpoints

import (
	"slices"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// assignment is an Assignment and what it is joined from: port, subset and the settings that order and filter
// endpoints.
type assignment struct {
	classes.Assignment

	// Immutable.
	order   gen.Ordering
	encoded *encoded
}

func newAssignment(k Key, e *encoded) *assignment {
	a := &assignment{order: k.Order, encoded: e}
	a.Name, a.Service = k.Name, k.Selection.Service
	a.Joiner = a
	return a
}

// Join implements classes.Joiner.
func (a *assignment) Join(set *snapshot.EndpointSet) *encodecache.Entry {
	return a.join(a.encoded.at(set))
}

// Part returns the name of the resource.
func (a *assignment) Part() string { return a.Name }

// Objects returns what defines the service.
func (a *assignment) Objects() []value.ObjectKey { return a.encoded.Objects() }

// assignmentLeaf is the size up to which an assignment is one piece: few of its parts are worth sharing.
const assignmentLeaf = 1 << 10

// join returns the resource: its name, and each group as a header with its length, followed by its chunks.
//
//	name │ locality, weight, priority │ chunk │ chunk │ … │ locality, weight, priority │ chunk │ …
func (a *assignment) join(set *encodedSet) *encodecache.Entry {
	ranked := make([]*gen.LocalityGroup, len(set.groups))
	for i, g := range set.groups {
		head := g.LocalityGroup
		ranked[i] = &head
	}
	a.order.Rank(ranked)
	header := encodecache.NewFragmentFrom(gen.AssignmentName(a.Name), a)
	var parts []*encodecache.Fragment
	size := len(header.Bytes())
	for i, head := range ranked {
		var endpoints []*encodecache.Fragment
		if !head.LeftOut {
			endpoints = set.groups[i].fragments
		}
		length := 0
		for _, f := range endpoints {
			length += len(f.Bytes())
		}
		start := encodecache.NewFragment(gen.LocalityField(*head, length))
		parts = append(append(parts, start), endpoints...)
		size += len(start.Bytes()) + length
	}
	if size > assignmentLeaf {
		return encodecache.NewComposite(xdstype.EndpointURL, a.Name, header, slices.Values(parts))
	}
	whole := append(make([]byte, 0, size), header.Bytes()...)
	for _, p := range parts {
		whole = append(whole, p.Bytes()...)
	}
	return encodecache.NewLeaf(xdstype.EndpointURL, a.Name, encodecache.NewFragmentFrom(whole, a))
}
