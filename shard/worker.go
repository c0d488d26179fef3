package shard

import (
	"context"
	"time"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/shard/admission"
	"github.com/pilotd/pilotd/shard/ads"
)

// worker is one shard.
type worker struct {
	// Immutable after newWorker.
	shards *Shards
	index  int

	// slots are where others leave work.
	slots slots

	// Owned by the worker goroutine.
	differ    *ads.Differ
	roster    roster
	endpoints endpoints
	sender    sender
	entrance  entrance
	audiences map[audienceKey]*audience
	timers    timers
	withheld  bool      // the endpoint slot is not to be looked at now
	silentAt  time.Time // when to look for clients that do not answer; zero while there are none

	stats stats
}

func newWorker(s *Shards, index int) *worker {
	w := &worker{shards: s, index: index, slots: newSlots(), timers: newTimers(),
		audiences: map[audienceKey]*audience{},
		differ:    ads.NewDiffer(s.opts.Types, s.opts.Names, s.verdicts, s.nonce)}
	w.roster = newRoster(s.opts.Types, &w.stats)
	w.endpoints = newEndpoints(s)
	w.sender = sender{shards: s, stats: &w.stats, responses: map[*ads.Batch]*encodecache.Response{}}
	w.entrance = entrance{worker: w, line: admission.NewLine[*client]()}
	return w
}

// run is the worker goroutine.
func (w *worker) run(ctx context.Context) {
	var timer <-chan time.Time
	var armed time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.slots.wake:
		case <-timer:
			timer, armed = nil, time.Time{}
		}
		w.round()
		if next := w.next(); !next.IsZero() && (armed.IsZero() || next.Before(armed)) {
			timer, armed = w.shards.opts.After(next.Sub(w.shards.clock.now())), next
		}
	}
}

// next returns when the worker has something to do if nothing comes; zero for never.
func (w *worker) next() time.Time {
	next := w.timers.next()
	if at := w.silentAt; !at.IsZero() && (next.IsZero() || at.Before(next)) {
		return at
	}
	return next
}

// round does all that has come. What comes meanwhile is for the next round, but for endpoints, which are looked at
// after every Cohort.
func (w *worker) round() {
	in := w.slots.take()
	w.lookAtEndpoints()
	w.entrance.crowded = len(in.inbox) > 1 || w.entrance.line.Len() > 0
	for _, m := range in.inbox {
		mail := m.collect()
		w.guard(m, "a request", func() { w.handleMail(m, mail) })
		w.lookAtEndpoints()
	}
	w.shards.opts.contain("new ResourceSets", func() { w.handleResourceSets(in) })
	w.shards.opts.contain("changed secrets", func() { w.handleAudiences(in.turned) })
	w.shards.opts.contain("timers", w.handleTimers)
	w.shards.opts.contain("those that connect", w.entrance.welcome)
	w.shards.opts.contain("those that do not answer", w.endSilent)
	for _, f := range in.asked {
		f()
	}
	w.differ.Turn()
	if w.roster.parted {
		w.roster.parted = false
		w.differ.Forget()
		w.endpoints.resources.sweep()
	}
	clear(w.sender.responses)
	w.stats.rounds.Add(1)
}

// handleResourceSets handles the config slot, class by class. While it has endpoints that go with the ResourceSets, a
// class whose ResourceSet is not handled yet must not be told of any: then the endpoint slot is looked at when all are.
func (w *worker) handleResourceSets(in taken) {
	if len(in.sets)+len(in.late.services) == 0 {
		return
	}
	w.shards.kept.forget()
	w.shards.opts.Metrics.Queued(ConfigLane, w.now().Sub(in.setsAt))
	w.stats.lanes[ConfigLane].Add(1)
	w.withheld = len(in.late.services) > 0
	if w.withheld {
		w.endpoints.learn(in.late.table, in.late.services)
	}
	for class, set := range in.sets {
		w.shards.opts.contain("a new ResourceSet", func() { w.handleResourceSet(class, set, in.setsAt) })
		w.lookAtEndpoints()
	}
	if w.withheld {
		w.withheld = false
		w.shards.opts.contain("endpoints of new ResourceSets", func() { w.tellOfEndpoints(in.late.services, in.setsAt) })
		w.lookAtEndpoints()
	}
	w.endpoints.resources.sweep()
	w.differ.Forget()
}

// handleTimers tells the time to those that are due.
func (w *worker) handleTimers() {
	now := w.now()
	for m := w.timers.pop(now); m != nil; m = w.timers.pop(now) {
		if !m.limit.IsZero() && !now.Before(m.limit) {
			m.limit = time.Time{}
			w.shards.budget.Settle(&m.debt)
			if now.Sub(w.entrance.welcomed) >= grace {
				w.shards.kept.forget()
			}
		}
		w.guard(m, "a timer", func() {
			if m.backlogged() {
				m.session.Stalled(now)
			}
			w.carryOut(m, m.session.Tick(now, w.differ), m.since)
		})
		w.lookAtEndpoints()
	}
}

func (w *worker) now() time.Time { return w.shards.clock.now() }
