package shard

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// slots are where everybody leaves work for a worker. Work is merged where it waits. No method blocks.
type slots struct {
	// wake has a token while something has come that the worker has not looked at.
	wake chan struct{}

	mu sync.Mutex
	// Guarded by mu: what has come and is not taken yet.
	inbox      []*client
	sets       map[*classes.Class]*classes.ResourceSet
	late       lateEndpoints
	setsAt     time.Time // when the oldest of sets and late came
	table      *snapshot.EndpointTable
	services   map[value.ServiceKey]struct{}
	servicesAt time.Time // when the oldest of services came
	asked      []func()
	turned     map[*audience]struct{} // whose secrets may have changed

	// endpointsCame and setsCame are set while the slots have something, so that looking costs no lock.
	endpointsCame, setsCame atomic.Bool
}

func newSlots() slots { return slots{wake: make(chan struct{}, 1)} }

// signal wakes the worker.
func (s *slots) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// postClient leaves a client in the inbox. The caller sees to it that it is not there yet.
func (s *slots) postClient(m *client) {
	s.mu.Lock()
	s.inbox = append(s.inbox, m)
	s.mu.Unlock()
	s.signal()
}

// postResourceSets merges new ResourceSets into the config slot, of each class the newest stays, and the endpoints that
// go with them.
func (s *slots) postResourceSets(sets map[*classes.Class]*classes.ResourceSet, e classes.Endpoints, now time.Time) {
	s.mu.Lock()
	if len(s.sets)+len(s.late.services) == 0 {
		s.setsAt = now
	}
	if len(s.sets) == 0 {
		s.sets = sets
	} else {
		maps.Copy(s.sets, sets)
	}
	s.late.add(e)
	s.setsCame.Store(true)
	s.mu.Unlock()
	s.signal()
}

// postEndpoints merges a change into the endpoint slot. Changes may come in any order: the newest table stays.
func (s *slots) postEndpoints(t *snapshot.EndpointTable, services []value.ServiceKey, now time.Time) {
	s.mu.Lock()
	if s.table == nil || t.Revision > s.table.Revision {
		s.table = t
	}
	if s.services == nil {
		s.services, s.servicesAt = make(map[value.ServiceKey]struct{}, len(services)), now
	}
	for _, k := range services {
		s.services[k] = struct{}{}
	}
	s.endpointsCame.Store(true)
	s.mu.Unlock()
	s.signal()
}

// postQuery has f called on the worker goroutine.
func (s *slots) postQuery(f func()) {
	s.mu.Lock()
	s.asked = append(s.asked, f)
	s.mu.Unlock()
	s.signal()
}

// postAudience notes that the secrets of an audience may have changed.
func (s *slots) postAudience(a *audience) {
	s.mu.Lock()
	if s.turned == nil {
		s.turned = map[*audience]struct{}{}
	}
	s.turned[a] = struct{}{}
	s.mu.Unlock()
	s.signal()
}

// taken is what one round takes.
type taken struct {
	inbox  []*client
	sets   map[*classes.Class]*classes.ResourceSet
	late   lateEndpoints
	setsAt time.Time
	asked  []func()
	turned map[*audience]struct{}
}

// take empties the slots, all at once: a ResourceSet that comes after its class's first member must not be looked at
// before that member is.
func (s *slots) take() taken {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := taken{s.inbox, s.sets, s.late, s.setsAt, s.asked, s.turned}
	s.inbox, s.sets, s.late, s.asked, s.turned = nil, nil, lateEndpoints{}, nil, nil
	s.setsCame.Store(false)
	return t
}

// takeEndpoints empties the endpoint slot. at is when the oldest of its changes came.
func (s *slots) takeEndpoints() (t *snapshot.EndpointTable, services map[value.ServiceKey]struct{}, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, services, at = s.table, s.services, s.servicesAt
	s.services = nil
	s.endpointsCame.Store(false)
	return t, services, at
}

// lateEndpoints are changes of endpoints that go with ResourceSets, merged.
type lateEndpoints struct {
	table    *snapshot.EndpointTable
	services map[value.ServiceKey]struct{}
}

func (l *lateEndpoints) add(e classes.Endpoints) {
	if len(e.Services) == 0 {
		return
	}
	if l.services == nil {
		l.services = make(map[value.ServiceKey]struct{}, len(e.Services))
	}
	for _, s := range e.Services {
		l.services[s] = struct{}{}
	}
	l.table = e.Table
}
