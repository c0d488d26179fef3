package shard

import (
	"iter"
	"maps"
	"time"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// lookAtEndpoints handles the endpoint changes that have come, if any.
func (w *worker) lookAtEndpoints() {
	if w.withheld || !w.slots.endpointsCame.Load() {
		return
	}
	t, services, at := w.slots.takeEndpoints()
	w.shards.opts.Metrics.Queued(EndpointLane, w.now().Sub(at))
	w.stats.lanes[EndpointLane].Add(1)
	w.shards.opts.contain("changed endpoints", func() { w.handleEndpoints(t, services, at) })
}

// sweepEvery is after how many endpoint changes all Sessions are refreshed, also those that no change concerned, so
// that none keeps old endpoints in memory.
const sweepEvery = 64

// handleEndpoints takes a change of endpoints and tells the members that it concerns.
func (w *worker) handleEndpoints(t *snapshot.EndpointTable, services map[value.ServiceKey]struct{}, at time.Time) {
	w.endpoints.learn(t, services)
	w.tellOfEndpoints(services, at)
}

// tellOfEndpoints tells those that subscribe to the endpoints of services that they have changed.
func (w *worker) tellOfEndpoints(services map[value.ServiceKey]struct{}, at time.Time) {
	subs := w.subscribersTo(services)
	if w.endpoints.log.seq%sweepEvery == 0 {
		subs = maps.Values(w.roster.subscribers.bySub)
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
		for it := range w.endpoints.joins.index.Items(service) {
			names[it.Key] = struct{}{}
		}
	}
	for name := range names {
		w.roster.subscribers.to(name, found)
	}
	if len(names) > 0 {
		maps.Copy(found, w.roster.subscribers.toAll)
	}
	return maps.Keys(found)
}
