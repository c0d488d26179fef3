package shard

import (
	"time"

	"github.com/pilotd/pilotd/gen/plan"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// lateEndpoints are changes of endpoints that go with ResourceSets, merged.
type lateEndpoints struct {
	table    *snapshot.EndpointTable
	services map[value.ServiceKey]struct{}
}

func (l *lateEndpoints) add(e plan.Endpoints) {
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

// lookAtEndpoints handles the endpoint slot if it has something.
func (w *worker) lookAtEndpoints() {
	if w.withheld || !w.endpointsCame.Load() {
		return
	}
	w.mu.Lock()
	t, services, at := w.table, w.services, w.servicesAt
	w.services = nil
	w.endpointsCame.Store(false)
	w.mu.Unlock()
	w.shards.opts.Metrics.Queued(EndpointLane, w.now().Sub(at))
	w.figures.lanes[EndpointLane].Add(1)
	w.contain("changed endpoints", func() { w.handleEndpoints(t, services, at) })
}

// sweepEvery is after how many endpoint changes all Sessions are brought along, also those that none concerned, so that
// none holds on to old endpoints.
const sweepEvery = 64

// handleEndpoints takes a change of endpoints.
func (w *worker) handleEndpoints(t *snapshot.EndpointTable, services map[value.ServiceKey]struct{}, at time.Time) {
	w.learn(t, services)
	w.tellOfEndpoints(services, at)
}

// learn takes the endpoints of services, and tells nobody.
func (w *worker) learn(t *snapshot.EndpointTable, services map[value.ServiceKey]struct{}) {
	if w.endpoints == nil || t.Revision > w.endpoints.Revision {
		w.endpoints = t
	}
	if len(services) > 0 {
		w.log.add(services)
	}
}

// tellOfEndpoints tells those that subscribe to the endpoints of services that they have changed.
func (w *worker) tellOfEndpoints(services map[value.ServiceKey]struct{}, at time.Time) {
	names := w.resourcesOf(services)
	all := w.log.seq%sweepEvery == 0
	if len(names) == 0 && !all {
		return
	}
	for sub, cohorts := range w.subscribers {
		if !all && !wants(sub, names) {
			continue
		}
		for group := range cohorts {
			for m := range group.members {
				w.guard(m, "a change of endpoints", func() { w.carryOut(m, m.session.Refresh(w.now(), w.book), at) })
			}
		}
	}
}

// resourcesOf are the names of the resources that the endpoints of services go into, in any ResourceSet in use.
func (w *worker) resourcesOf(services map[value.ServiceKey]struct{}) map[string]struct{} {
	names := map[string]struct{}{}
	for j := range w.joins.all() {
		for s := range services {
			for _, a := range w.shards.opts.join.assignmentsOf(j.set, s) {
				names[a.Name] = struct{}{}
			}
		}
	}
	return names
}

// subscribers are the cohorts of all crews of a worker by what they subscribe to, so that a change is held against each
// subscription once, however many classes there are. Owned by the worker goroutine.
type subscribers map[ads.Subscription]map[*cohort]struct{}

func (s subscribers) add(c *cohort) {
	if s[c.sub] == nil {
		s[c.sub] = map[*cohort]struct{}{}
	}
	s[c.sub][c] = struct{}{}
}

func (s subscribers) remove(c *cohort) {
	delete(s[c.sub], c)
	if len(s[c.sub]) == 0 {
		delete(s, c.sub)
	}
}

// wants reports whether a subscription has any of names.
func wants(sub ads.Subscription, names map[string]struct{}) bool {
	if sub.All {
		return true
	}
	for n := range names {
		if sub.Names.Contains(n) {
			return true
		}
	}
	return false
}
