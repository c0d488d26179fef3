package shard

import (
	"iter"
	"maps"
	"time"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

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

// lookAtEndpoints handles the endpoint changes that have come, if any.
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
	w.stats.lanes[EndpointLane].Add(1)
	w.contain("changed endpoints", func() { w.handleEndpoints(t, services, at) })
}

// sweepEvery is after how many endpoint changes all Sessions are refreshed, also those that no change concerned, so
// that none keeps old endpoints in memory.
const sweepEvery = 64

// handleEndpoints takes a change of endpoints and tells the members that it concerns.
func (w *worker) handleEndpoints(t *snapshot.EndpointTable, services map[value.ServiceKey]struct{}, at time.Time) {
	w.learn(t, services)
	w.tellOfEndpoints(services, at)
}

// learn notes that the endpoints of services have changed, without telling any member.
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
	subs := w.subscribersTo(services)
	if w.log.seq%sweepEvery == 0 {
		subs = maps.Values(w.subscribers.bySub)
	}
	for s := range subs {
		for group := range s.cohorts {
			for m := range group.members {
				w.guard(m, "a change of endpoints", func() { w.carryOut(m, m.session.Refresh(w.now(), w.differ), at) })
			}
		}
	}
}

// subscribersTo yields the subscriptions to any resource that the endpoints of services go into, in any ResourceSet in
// use, each once. It is worked out before the first is yielded.
func (w *worker) subscribersTo(services map[value.ServiceKey]struct{}) iter.Seq[*subscription] {
	found := map[*subscription]struct{}{}
	names := map[string]struct{}{}
	for service := range services {
		for it := range w.joins.index.Items(service) {
			names[it.Key] = struct{}{}
		}
	}
	for name := range names {
		w.subscribers.to(name, found)
	}
	if len(names) > 0 {
		maps.Copy(found, w.subscribers.toAll)
	}
	return maps.Keys(found)
}
