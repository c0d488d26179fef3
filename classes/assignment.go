package classes

import (
	"sync"
	"weak"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Joiner makes the resource of an Assignment from the endpoints of its service.
type Joiner interface {
	Join(*snapshot.EndpointSet) *encodecache.Entry
}

// Assignment holds everything that a ClusterLoadAssignment depends on, except the endpoints themselves. Assignments
// that depend on the same things are the same pointer.
type Assignment struct {
	// Name is the name of the resource: the cluster's service_name. Immutable.
	Name string
	// Service is the service whose endpoints it contains. Immutable.
	Service value.ServiceKey
	// Joiner holds the inputs of the resource: port, subset and the settings that order and filter endpoints.
	// Immutable.
	Joiner Joiner

	mu sync.Mutex
	// Guarded by mu: the Entry for the EndpointSet that was requested last, and the one before for as long as something
	// refers to it, because a client that is behind may still need it.
	lastSet       *snapshot.EndpointSet
	last          *encodecache.Entry
	previousSet   weak.Pointer[snapshot.EndpointSet]
	previousEntry weak.Pointer[encodecache.Entry]
}

// Entry returns the resource for the endpoints in t. It is made on first use and shared by all callers with the same
// EndpointSet.
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
	a.lastSet, a.last = set, a.Joiner.Join(set)
	return a.last
}
