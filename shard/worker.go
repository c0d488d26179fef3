package shard

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/shard/admission"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// worker is one shard.
type worker struct {
	// Immutable after newWorker.
	shards *Shards
	index  int
	wake   chan struct{}

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

	// endpointsCame and setsCame are set while the slots have something, so that looking costs no lock.
	endpointsCame, setsCame atomic.Bool

	// Owned by the worker goroutine.
	differ      *ads.Differ
	responses   map[*ads.Batch]*encodecache.Response // of this round
	groups      map[*classGroup]struct{}
	byClass     map[*classes.Class]*classGroup
	joins       joinedTable
	subscribers subscribers
	endpoints   *snapshot.EndpointTable // nil until the first
	withheld    bool                    // the endpoint slot is not to be looked at now
	log         changeLog
	resources   resourcesTable
	timers      timers
	silentAt    time.Time                // when to look for clients that do not answer; zero while there are none
	connecting  *admission.Line[*client] // members with a type's first request, which are answered one by one
	parted      bool                     // the last member of a class has left, in this round
	crowded     bool                     // several have come in this round
	given       int                      // bytes of responses, ever
	welcomed    time.Time                // when a client that connects was answered last

	stats stats
}

// classGroup is the members of one class on this shard.
type classGroup struct {
	class   *classes.Class
	desired *desired
	members map[*client]struct{}
	cohorts map[ads.Subscription]*cohort
}

// cohort are the members of a class group that subscribe to the same endpoints.
type cohort struct {
	sub     ads.Subscription
	members map[*client]struct{}
}

func newWorker(s *Shards, index int) *worker {
	return &worker{
		shards: s, index: index, wake: make(chan struct{}, 1),
		differ:    ads.NewDiffer(s.opts.Types, s.opts.Names, s.verdicts, s.nonce),
		responses: map[*ads.Batch]*encodecache.Response{},
		groups:    map[*classGroup]struct{}{}, byClass: map[*classes.Class]*classGroup{}, joins: newJoinedTable(),
		subscribers: newSubscribers(),
		resources:   resourcesTable{}, timers: newTimers(), connecting: admission.NewLine[*client](),
	}
}

func (w *worker) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// postClient leaves a client in the inbox. The caller sees to it that it is not there yet.
func (w *worker) postClient(m *client) {
	w.mu.Lock()
	w.inbox = append(w.inbox, m)
	w.mu.Unlock()
	w.signal()
}

// postResourceSets merges new ResourceSets into the config slot, of each class the newest stays, and the endpoints that
// go with them.
func (w *worker) postResourceSets(sets map[*classes.Class]*classes.ResourceSet, e classes.Endpoints, now time.Time) {
	w.mu.Lock()
	if len(w.sets)+len(w.late.services) == 0 {
		w.setsAt = now
	}
	if len(w.sets) == 0 {
		w.sets = sets
	} else {
		maps.Copy(w.sets, sets)
	}
	w.late.add(e)
	w.setsCame.Store(true)
	w.mu.Unlock()
	w.signal()
}

// postEndpoints merges a change into the endpoint slot. Changes may come in any order: the newest table stays.
func (w *worker) postEndpoints(t *snapshot.EndpointTable, services []value.ServiceKey, now time.Time) {
	w.mu.Lock()
	if w.table == nil || t.Revision > w.table.Revision {
		w.table = t
	}
	if w.services == nil {
		w.services, w.servicesAt = make(map[value.ServiceKey]struct{}, len(services)), now
	}
	for _, s := range services {
		w.services[s] = struct{}{}
	}
	w.endpointsCame.Store(true)
	w.mu.Unlock()
	w.signal()
}

// postQuery has f called on the worker goroutine.
func (w *worker) postQuery(f func()) {
	w.mu.Lock()
	w.asked = append(w.asked, f)
	w.mu.Unlock()
	w.signal()
}

// run is the worker goroutine.
func (w *worker) run(ctx context.Context) {
	var timer <-chan time.Time
	var armed time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
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
	in := w.take()
	w.lookAtEndpoints()
	w.crowded = len(in.inbox) > 1 || w.connecting.Len() > 0
	for _, m := range in.inbox {
		mail := m.collect()
		w.guard(m, "a request", func() { w.handleMail(m, mail) })
		w.lookAtEndpoints()
	}
	w.contain("new ResourceSets", func() { w.handleResourceSets(in) })
	w.contain("timers", w.handleTimers)
	w.contain("those that connect", w.welcome)
	w.contain("those that do not answer", w.endSilent)
	for _, f := range in.asked {
		f()
	}
	w.differ.Turn()
	if w.parted {
		w.parted = false
		w.differ.Forget()
		w.resources.sweep()
	}
	clear(w.responses)
	w.stats.rounds.Add(1)
}

// taken is what one round takes.
type taken struct {
	inbox  []*client
	sets   map[*classes.Class]*classes.ResourceSet
	late   lateEndpoints
	setsAt time.Time
	asked  []func()
}

// take empties the slots, all at once: a ResourceSet that comes after its class's first member must not be looked at
// before that member is.
func (w *worker) take() taken {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := taken{w.inbox, w.sets, w.late, w.setsAt, w.asked}
	w.inbox, w.sets, w.late, w.asked = nil, nil, lateEndpoints{}, nil
	w.setsCame.Store(false)
	return t
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
		w.learn(in.late.table, in.late.services)
	}
	for class, set := range in.sets {
		w.contain("a new ResourceSet", func() { w.handleResourceSet(class, set, in.setsAt) })
		w.lookAtEndpoints()
	}
	if w.withheld {
		w.withheld = false
		w.contain("endpoints of new ResourceSets", func() { w.tellOfEndpoints(in.late.services, in.setsAt) })
		w.lookAtEndpoints()
	}
	w.resources.sweep()
	w.differ.Forget()
}

// handleTimers tells the time to those that are due.
func (w *worker) handleTimers() {
	now := w.now()
	for m := w.timers.pop(now); m != nil; m = w.timers.pop(now) {
		if !m.limit.IsZero() && !now.Before(m.limit) {
			m.limit = time.Time{}
			w.shards.budget.Settle(&m.debt)
			if now.Sub(w.welcomed) >= grace {
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

// entry returns the resource of an assignment for the newest endpoints.
func (w *worker) entry(a *classes.Assignment) *encodecache.Entry {
	return w.shards.opts.join.entry(a, w.endpoints)
}
