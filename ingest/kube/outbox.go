package kube

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot/value"
)

// outbox holds what the sink has not been told: for each object the latest.
type outbox struct {
	// Immutable after newOutbox. ready has a token when there is something to take.
	ready chan struct{}
	log   *slog.Logger
	grace time.Duration

	mu sync.Mutex
	// Guarded by mu.
	pending  updates
	readings map[string]*reading // by resource
	complete time.Time           // when the last kind that pilotd needs had come; zero before
	told     bool                // that all have come
}

// updates are what is to be told together.
type updates struct {
	objects map[value.ObjectKey]update
	synced  bool
}

// update is what is to be told of one object. Updates of one object merge: the later event replaces the earlier; a
// rejection leaves the event before it, which is the last good version.
type update struct {
	event  *ingest.Event
	reject *ingest.Rejection
	accept bool // an earlier rejection ends
}

// merge returns first and then l.
func (l update) merge(first update) update {
	l.accept = l.accept || first.accept
	if l.event == nil {
		l.event = first.event
	}
	return l
}

func newOutbox(log *slog.Logger, grace time.Duration) *outbox {
	return &outbox{
		ready:    make(chan struct{}, 1),
		pending:  updates{objects: map[value.ObjectKey]update{}},
		readings: map[string]*reading{},
		log:      log,
		grace:    cmp.Or(grace, defaultGrace),
	}
}

// put merges updates into what is pending. It never waits for the sink.
func (o *outbox) put(objects map[value.ObjectKey]update) {
	if len(objects) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, l := range objects {
		o.add(key, l)
	}
	o.signal()
}

// post is put of one update.
func (o *outbox) post(key value.ObjectKey, l update) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.add(key, l)
	o.signal()
}

// add is called under mu.
func (o *outbox) add(key value.ObjectKey, l update) {
	if first, ok := o.pending.objects[key]; ok {
		l = l.merge(first)
	}
	o.pending.objects[key] = l
}

// expect makes Synced wait for arrived of the same resource.
func (o *outbox) expect(k kind) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.readings[k.resource] = &reading{source: k.source, kind: value.ObjectKey{Cluster: k.cluster, Kind: k.Name},
		need: k.need, waiting: true, since: time.Now()}
}

// arrived tells that all that a resource had at first was put, or that it is not there.
func (o *outbox) arrived(resource string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.readings[resource]; r != nil {
		r.waiting = false
	}
	o.open(time.Now())
}

// open tells that all have come, once that is so. Called under mu.
func (o *outbox) open(now time.Time) {
	needed, any := false, false
	for _, r := range o.readings {
		any = any || r.waiting
		needed = needed || r.waiting && !r.optional
	}
	if !needed && o.complete.IsZero() {
		o.complete = now
	}
	if !any && !o.told {
		o.told, o.pending.synced = true, true
		o.signal()
	}
}

// waits reports whether a resource is waited for.
func (o *outbox) waits(resource string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.readings[resource]
	return r != nil && r.waiting
}

// progressed tells that an object of a resource came.
func (o *outbox) progressed(resource string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.readings[resource]; r != nil && r.waiting {
		r.progress = time.Now()
	}
}

// watching tells that changes of a resource are told from now on.
func (o *outbox) watching(resource string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.readings[resource]; r != nil && r.watching.IsZero() {
		r.watching = time.Now()
	}
}

// failed tells that a resource cannot be read.
func (o *outbox) failed(resource string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.readings[resource]; r != nil {
		r.fail(time.Now(), err)
		o.review(resource, r, time.Now())
		o.open(time.Now())
	}
}

// ended tells that a resource is read no more: it is not there.
func (o *outbox) ended(resource string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.readings[resource]; r != nil {
		if r.reported {
			o.add(r.kind, update{accept: true})
			o.signal()
		}
		delete(o.readings, resource)
	}
	o.open(time.Now())
}

// tick does what is due at a time. It is to be called every second.
func (o *outbox) tick(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, resource := range slices.Sorted(maps.Keys(o.readings)) {
		o.review(resource, o.readings[resource], now)
	}
	o.open(now)
}

// review does what is due of one resource. Called under mu.
func (o *outbox) review(resource string, r *reading, now time.Time) {
	key := r.kind
	if r.due(now) {
		r.reported = true
		level := slog.LevelError
		if r.excused && r.denied {
			level = slog.LevelWarn // As is to be expected with the rights in one namespace.
		}
		o.log.Log(context.Background(), level, "a kind cannot be read; it is tried again", "resource", resource,
			"error", r.reason, "optional", r.optional, "until then", r.loss)
		o.add(key, update{reject: r.rejection()})
		o.signal()
	}
	if r.healed(now) {
		if r.reported {
			o.log.Info("a kind is read again", "resource", resource)
			o.add(key, update{accept: true})
			o.signal()
		}
		r.reported, r.failing, r.reason, r.denied = false, time.Time{}, "", false
	}
	if r.waiting && r.optional && (!o.complete.IsZero() || r.excused && r.denied) &&
		r.overdue(now, o.complete, o.grace) {
		r.waiting = false
		if r.reason == "" {
			r.failing, r.reason = r.since, "no answer"
		}
		o.log.Warn("a kind is not waited for any longer", "resource", resource, "error", r.reason,
			"until it can be read", r.loss)
		if !r.reported {
			r.reported = true
			o.add(key, update{reject: r.rejection()})
			o.signal()
		}
	}
}

// signal is called under mu.
func (o *outbox) signal() {
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// take empties the outbox.
func (o *outbox) take() updates {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := o.pending
	o.pending = updates{objects: map[value.ObjectKey]update{}}
	return taken
}

// missing says of each resource that is waited for since when and why.
func (o *outbox) missing() (out []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, resource := range slices.Sorted(maps.Keys(o.readings)) {
		if r := o.readings[resource]; r.waiting {
			out = append(out, r.text(resource, time.Now()))
		}
	}
	return out
}

// hand tells the sink what updates say: all events in one call. Where that panics, each event is told on its own, so
// that the one that is to blame is left out alone.
func (s *Source) hand(l updates) {
	events := make([]ingest.Event, 0, len(l.objects))
	for key, o := range l.objects {
		if o.accept {
			s.sink.Accept(s.Name(), key.String())
		}
		if o.reject != nil {
			s.sink.Reject(*o.reject)
		}
		if o.event != nil {
			events = append(events, *o.event)
		}
	}
	if len(events) > 0 && s.apply("all objects", events) != nil {
		for i := range events {
			if err := s.apply(events[i].Key.String(), events[i:i+1]); err != nil {
				s.sink.Reject(ingest.Rejection{Source: s.Name(), Key: events[i].Key, Cause: report.Panicked,
					Reason: err.Error()})
			}
		}
	}
	if l.synced {
		s.sink.Synced(s.Name())
	}
}

// apply hands events to the sink and contains a panic of it.
func (s *Source) apply(unit string, events []ingest.Event) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = s.panicked(unit, cause)
		}
	}()
	s.sink.Apply(events)
	return nil
}
