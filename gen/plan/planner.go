package plan

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// Planner keeps the ResourceSets of the classes in use up to date. It takes Views from the snapshot builder and proxies
// from the shards, and gives ResourceSets to its Sink.
//
//	Publish ─► slot (newest View, merged Delta) ─┐
//	Attach, Detach ─► inbox ─────────────────────┴─► config goroutine ─► Sink.Assigned, Sink.Advanced
//	Publish ─► endpoints that need no new ResourceSet ────────────────────────► Sink.EndpointsChanged
//
// The config goroutine owns all bases and classes. The endpoint lane does not pass through it: endpoint changes go to
// the Sink from within Publish, except for those that need a ResourceSet first (a first endpoint, a new service
// account), which go with that ResourceSet.
type Planner struct {
	// Immutable after NewPlanner.
	tables *Tables
	sink   classes.Sink
	opts   Options
	wake   chan struct{}

	// Guarded by mu.
	mu      sync.Mutex
	view    *snapshot.View // the newest that was published; nil before the first
	delta   changes        // from what the config goroutine has taken to view
	since   time.Time      // when the oldest change in delta came
	late    map[value.ServiceKey]struct{}
	going   map[value.ServiceKey]struct{} // those of late that the config goroutine is about to give to the Sink
	arrived []arrival
	left    []uint64
	wanted  []want
	waiters []chan struct{}
	counted Counts // after the last step

	state // owned by the config goroutine
}

// Options are settings of a Planner.
type Options struct {
	// DebounceAfter and DebounceMax hold a config change back until none has come for After, at most for Max. Zero, the
	// default: the first change after quiet goes at once, and what comes while one is worked on is merged.
	DebounceAfter, DebounceMax time.Duration
	// Now and After are the clock.
	Now   func() time.Time
	After func(time.Duration) <-chan time.Time
	// Faults is told all that is wrong with what is made of an object whenever that changes, in place of what it was
	// told before; none: nothing is left out. It must not block or call the Planner. Log gets the stack of panics that
	// were caught. Both may be nil.
	Faults func(value.ObjectKey, []checked.Fault)
	Log    *slog.Logger
	// Took is told how long each step of the config goroutine took, and how many bases and classes it advanced; may be
	// nil.
	Took func(Step)
}

// Step describes one step of the config goroutine.
type Step struct {
	Waited, Took    time.Duration
	Bases, Advanced int
}

type arrival struct {
	id    uint64
	proxy *proxy.Proxy
}

// want is a client that has asked for a type which is made on demand.
type want struct {
	id  uint64
	typ xdstype.Type
}

// NewPlanner makes a Planner that works once Run is called.
func NewPlanner(t *Tables, sink classes.Sink, o Options) *Planner {
	if o.Took == nil {
		o.Took = func(Step) {}
	}
	t.faults.Tell(o.Faults, o.Log)
	return &Planner{tables: t, sink: sink, opts: o, wake: make(chan struct{}, 1), late: map[value.ServiceKey]struct{}{},
		state: newState()}
}

// Publish takes the newest View and what differs from the one before. It implements snapshot.Listener and does not
// block.
func (p *Planner) Publish(v *snapshot.View, d *snapshot.Delta) {
	if v.Snapshot.Mesh == nil {
		return
	}
	p.mu.Lock()
	prev := p.view
	p.view = v
	if p.delta.Empty() {
		p.since = p.opts.Now()
	}
	p.delta.Merge(&snapshot.Delta{All: d.All || prev == nil, Objects: d.Objects, Services: d.Services,
		Projections: d.Projections, Workloads: d.Workloads})
	var now []value.ServiceKey
	for k, c := range d.Endpoints {
		if prev != nil {
			p.delta.moved(c)
		}
		_, waits := p.late[k]
		_, goes := p.going[k]
		if waits || goes || prev == nil || d.All || needsResourceSet(prev, v, k) {
			p.late[k] = struct{}{}
		} else {
			now = append(now, k)
		}
	}
	needed := !p.delta.Empty() || len(p.late) > 0
	p.mu.Unlock()
	if len(now) > 0 {
		p.sink.EndpointsChanged(v.Endpoints, now)
	}
	if needed {
		p.signal()
	}
}

// changes is what differs between two Views: the Delta without its endpoints, and the addresses at which these come or
// go.
type changes struct {
	snapshot.Delta
	addresses map[string]struct{}
}

// Empty reports whether nothing differs.
func (c *changes) Empty() bool { return c.Delta.Empty() && len(c.addresses) == 0 }

// moved notes the addresses at which the endpoints of a service come or go: a proxy there may serve other ports now.
func (c *changes) moved(set snapshot.Change[*snapshot.EndpointSet]) {
	for _, a := range set.New.Moved(set.Old) {
		if c.addresses == nil {
			c.addresses = map[string]struct{}{}
		}
		c.addresses[a] = struct{}{}
	}
}

// needsResourceSet reports whether the change of a service's endpoints from prev to v adds something that clusters or
// listeners must know first, or comes of the service being gone: it keeps its endpoints until nothing leads to it any
// more.
func needsResourceSet(prev, v *snapshot.View, k value.ServiceKey) bool {
	old, now := prev.Snapshot.Projection(k), v.Snapshot.Projection(k)
	was, is := prev.Snapshot.Service(k) != nil, v.Snapshot.Service(k) != nil
	if was && !is {
		return true
	}
	if old == now || !was {
		return old != now
	}
	for _, a := range now.ServiceAccounts {
		if !slices.Contains(old.ServiceAccounts, a) {
			return true
		}
	}
	return now.Any && !old.Any
}

// Attach asks for the ResourceSet of a proxy; the answer is a call of Sink.Assigned, after the first View.
func (p *Planner) Attach(id uint64, client *proxy.Proxy) {
	p.mu.Lock()
	p.arrived = append(p.arrived, arrival{id, client})
	p.mu.Unlock()
	p.signal()
}

// Detach forgets a proxy. No Assigned for it is called after the one under way.
func (p *Planner) Detach(id uint64) {
	p.mu.Lock()
	p.left = append(p.left, id)
	p.mu.Unlock()
	p.signal()
}

// Want tells that a client has asked for a type whose resources are made on demand: they are in the ResourceSets of all
// classes from then on, until the last client that asked is detached. It implements shard.Demand and does not block.
func (p *Planner) Want(id uint64, t xdstype.Type) {
	p.mu.Lock()
	p.wanted = append(p.wanted, want{id, t})
	p.mu.Unlock()
	p.signal()
}

// Barrier waits until everything that was published and attached before it has been given to the Sink.
func (p *Planner) Barrier(ctx context.Context) error {
	done := make(chan struct{})
	p.mu.Lock()
	p.waiters = append(p.waiters, done)
	p.mu.Unlock()
	p.signal()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *Planner) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Run is the config goroutine; it returns when ctx ends.
func (p *Planner) Run(ctx context.Context) {
	for {
		select {
		case <-p.wake:
		case <-ctx.Done():
			return
		}
		if !p.settle(ctx) {
			return
		}
		p.step()
	}
}

// settle waits, where a debounce is set, until changes pause. It reports false when ctx ended.
func (p *Planner) settle(ctx context.Context) bool {
	if p.opts.DebounceAfter <= 0 {
		return true
	}
	for {
		p.mu.Lock()
		quiet := p.delta.Empty()
		left := p.opts.DebounceMax - p.opts.Now().Sub(p.since)
		p.mu.Unlock()
		if quiet || left <= 0 {
			return true
		}
		select {
		case <-p.opts.After(min(p.opts.DebounceAfter, left)):
			return true
		case <-p.wake: // another change: wait again
		case <-ctx.Done():
			return false
		}
	}
}

// work is what one step takes from the slots.
type work struct {
	view    *snapshot.View
	delta   changes
	since   time.Time
	late    map[value.ServiceKey]struct{}
	arrived []arrival
	left    []uint64
	wanted  []want
	waiters []chan struct{}
}

func (p *Planner) take() work {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := work{p.view, p.delta, p.since, p.late, p.arrived, p.left, p.wanted, p.waiters}
	if w.view == nil { // nothing can be answered yet
		p.arrived = slices.DeleteFunc(p.arrived, w.gone)
		w.arrived = nil
	} else {
		p.delta, p.late, p.arrived = changes{}, map[value.ServiceKey]struct{}{}, nil
	}
	p.going, p.left, p.wanted, p.waiters = w.late, nil, nil, nil
	return w
}

// timeSlice is how long a step answers clients that are new before it looks at what has changed.
const timeSlice = 5 * time.Millisecond

// welcome answers who is new; those that a step has no time for are for the next one.
func (p *Planner) welcome(w *work, start time.Time) {
	for i, a := range w.arrived {
		if i > 0 && p.opts.Now().Sub(start) > timeSlice {
			p.mu.Lock()
			p.arrived = append(slices.DeleteFunc(w.arrived[i:], w.gone), p.arrived...)
			p.waiters, w.waiters = append(w.waiters, p.waiters...), nil
			p.mu.Unlock()
			p.signal()
			return
		}
		if !w.gone(a) {
			p.attach(a)
		}
	}
}

// gone reports whether an arrival has left already.
func (w *work) gone(a arrival) bool { return slices.Contains(w.left, a.id) }

// step brings everything to the newest View, then answers who is new.
func (p *Planner) step() {
	w := p.take()
	start := p.opts.Now()
	for _, id := range w.left {
		p.detach(id)
	}
	if w.view != nil {
		took := Step{}
		if !w.delta.Empty() || len(w.late) > 0 {
			late := classes.Endpoints{Table: w.view.Endpoints, Services: slices.Collect(maps.Keys(w.late))}
			took.Waited = start.Sub(w.since)
			took.Bases, took.Advanced = p.advance(w.view, &w.delta, late)
		}
		p.current = w.view
		p.welcome(&w, start)
		p.sweep()
		p.attend(w.wanted)
		p.tables.faults.Settle()
		took.Took = p.opts.Now().Sub(start)
		p.opts.Took(took)
	}
	p.mu.Lock()
	if p.going, p.counted = nil, p.counts(); len(p.arrived) == 0 {
		p.memo = nil
	}
	p.mu.Unlock()
	for _, done := range w.waiters {
		close(done)
	}
}

// Counts returns how much the Planner had after its last step. Any goroutine may call it.
func (p *Planner) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counted
}
