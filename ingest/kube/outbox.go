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

// outbox holds what the sink has not received yet: the latest update of each object.
type outbox struct {
	// Immutable after newOutbox. ready holds a token if there is something to take.
	ready chan struct{}
	log   *slog.Logger
	grace time.Duration

	mu sync.Mutex
	// Guarded by mu.
	pending  updates
	readings map[string]*reading // by the name of the resource
	complete time.Time           // when the last required kind had arrived; zero before
	told     bool                // Synced has been put into pending
}

// updates are what the sink receives together.
type updates struct {
	objects map[value.ObjectKey]update
	synced  bool
}

// update is the pending news about one object. Updates of one object merge: a later event replaces the earlier one, and
// a rejection keeps the event before it, which is the last good version.
type update struct {
	event  *ingest.Event
	reject *ingest.Rejection
	accept bool // withdraw an earlier rejection
}

// merge returns the update that has the effect of first and then l.
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

// put merges updates into what is pending. It never blocks on the sink.
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

// post is put for a single update.
func (o *outbox) post(key value.ObjectKey, l update) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.add(key, l)
	o.signal()
}

// add merges one update into what is pending. Called under mu.
func (o *outbox) add(key value.ObjectKey, l update) {
	if first, ok := o.pending.objects[key]; ok {
		l = l.merge(first)
	}
	o.pending.objects[key] = l
}

// expect makes Synced wait until arrived is called for the kind's resource.
func (o *outbox) expect(k kind) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.readings[k.resource] = &reading{source: k.source, kind: value.ObjectKey{Cluster: k.cluster, Kind: k.Name},
		need: k.need, waiting: true, since: time.Now()}
}

// arrived records that the first list of a resource is in the outbox, or that the resource does not exist.
func (o *outbox) arrived(resource string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.readings[resource]; r != nil {
		r.waiting = false
	}
	o.open(time.Now())
}

// open notes when the required kinds have all arrived, and puts Synced into pending once no kind is waited for. Called
// under mu.
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

// waits reports whether Synced waits for a resource.
func (o *outbox) waits(resource string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.readings[resource]
	return r != nil && r.waiting
}

// progressed records that an object of a resource arrived.
func (o *outbox) progressed(resource string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.readings[resource]; r != nil && r.waiting {
		r.progress = time.Now()
	}
}

// watching records that the watch of a resource has started.
func (o *outbox) watching(resource string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.readings[resource]; r != nil && r.watching.IsZero() {
		r.watching = time.Now()
	}
}

// failed records that a resource cannot be read.
func (o *outbox) failed(resource string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.readings[resource]; r != nil {
		r.fail(time.Now(), err)
		o.review(resource, r, time.Now())
		o.open(time.Now())
	}
}

// ended records that a resource no longer exists and is not read any more.
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

// tick does what has become due. The source calls it every second.
func (o *outbox) tick(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, resource := range slices.Sorted(maps.Keys(o.readings)) {
		o.review(resource, o.readings[resource], now)
	}
	o.open(now)
}

// review does what has become due for one resource. Called under mu.
func (o *outbox) review(resource string, r *reading, now time.Time) {
	key := r.kind
	if r.due(now) {
		r.reported = true
		level := slog.LevelError
		if r.excused && r.denied {
			level = slog.LevelWarn // expected if pilotd has rights in one namespace only
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

// signal wakes the goroutine that takes. Called under mu.
func (o *outbox) signal() {
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// take returns what is pending and empties the outbox.
func (o *outbox) take() updates {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := o.pending
	o.pending = updates{objects: map[value.ObjectKey]update{}}
	return taken
}

// missing describes each resource that Synced waits for: since when and why.
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

// hand passes updates to the sink, with all events in one call. If that panics, it passes each event by itself, so that
// only the event that causes the panic is lost.
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

// apply passes events to the sink and converts a panic to an error.
func (s *Source) apply(unit string, events []ingest.Event) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = s.panicked(unit, cause)
		}
	}()
	s.sink.Apply(events)
	return nil
}
