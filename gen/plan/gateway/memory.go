package gateway

import (
	"sync"
	"weak"

	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
)

// memory finds the router that another base has of the same Snapshot already, while anyone holds it. Safe for
// concurrent use.
type memory struct {
	mu sync.Mutex
	// Guarded by mu.
	of      weak.Pointer[snapshot.Snapshot]
	routers map[scope.Facts]weak.Pointer[Router]
}

// find returns the router with some Facts of a Snapshot, or nil.
func (m *memory) find(n *snapshot.Snapshot, f scope.Facts) *Router {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of.Value() != n {
		return nil
	}
	return m.routers[f].Value()
}

// note remembers a router; those of other Snapshots are forgotten.
func (m *memory) note(n *snapshot.Snapshot, f scope.Facts, r *Router) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of.Value() != n {
		m.of, m.routers = weak.Make(n), map[scope.Facts]weak.Pointer[Router]{}
	}
	m.routers[f] = weak.Make(r)
}

// Len returns the number of routers that it remembers and somebody still has.
func (m *memory) Len() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.routers {
		if r.Value() != nil {
			n++
		}
	}
	return n
}
