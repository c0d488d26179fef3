package endpoints

import (
	"slices"
	"sync"
	"weak"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// Assignment is all that a ClusterLoadAssignment depends on but the endpoints themselves: service, port, subset and the
// settings that order and filter endpoints. Two Assignments of one Key are one pointer.
type Assignment struct {
	// Name is the name of the resource: the cluster's service_name.
	Name string
	// Service is whose endpoints they are.
	Service value.ServiceKey

	// Immutable.
	order   gen.Ordering
	encoded *encoded

	mu sync.Mutex
	// Guarded by mu: the Entry for the set that was asked for last, and for the one before while someone holds it,
	// because a client that is behind may still want it.
	lastSet       *snapshot.EndpointSet
	last          *encodecache.Entry
	previousSet   weak.Pointer[snapshot.EndpointSet]
	previousEntry weak.Pointer[encodecache.Entry]
}

// Entry returns the resource for the endpoints in t, made on first use and shared by all that ask for the same set.
func (a *Assignment) Entry(t *snapshot.EndpointTable) *encodecache.Entry {
	set := t.Set(a.Service)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last != nil && a.lastSet == set {
		return a.last
	}
	if e := a.previousEntry.Value(); e != nil && a.previousSet == weak.Make(set) {
		return e
	}
	a.previousSet, a.previousEntry = weak.Make(a.lastSet), weak.Make(a.last)
	a.lastSet, a.last = set, a.join(a.encoded.at(set))
	return a.last
}

// Part returns the name of the resource.
func (a *Assignment) Part() string { return a.Name }

// Objects returns what defines the service.
func (a *Assignment) Objects() []value.ObjectKey { return a.encoded.Objects() }

// assignmentLeaf is the size up to which an assignment is one piece: few of its parts are worth sharing.
const assignmentLeaf = 1 << 10

// join returns the resource: its name, and each group as a header with its length, followed by its chunks.
//
//	name │ locality, weight, priority │ chunk │ chunk │ … │ locality, weight, priority │ chunk │ …
func (a *Assignment) join(set *encodedSet) *encodecache.Entry {
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
