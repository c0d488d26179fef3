package kube

import (
	"maps"
	"slices"
	"sync"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// outbox holds what the sink has not been told: for each object the latest.
type outbox struct {
	// Immutable after newOutbox. ready has a token when there is something to take.
	ready chan struct{}

	mu sync.Mutex
	// Guarded by mu.
	pending  letters
	expected map[string]struct{} // resources whose first list has not come
	told     bool                // that all have come
}

// letters are what is to be told together.
type letters struct {
	objects map[value.ObjectKey]letter
	synced  bool
}

// letter is what is to be told of one object. Letters of one object merge: the later event replaces the earlier; a rejection leaves the
// event before it, which is the last good version.
type letter struct {
	event  *ingest.Event
	reject *ingest.Rejection
	accept bool // an earlier rejection ends
}

// merge is first and then l.
func (l letter) merge(first letter) letter {
	l.accept = l.accept || first.accept
	if l.event == nil {
		l.event = first.event
	}
	return l
}

func newOutbox() *outbox {
	return &outbox{
		ready:    make(chan struct{}, 1),
		pending:  letters{objects: map[value.ObjectKey]letter{}},
		expected: map[string]struct{}{},
	}
}

// put merges letters into what is pending. It never waits for the sink.
func (o *outbox) put(objects map[value.ObjectKey]letter) {
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

// post is put of one letter.
func (o *outbox) post(key value.ObjectKey, l letter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.add(key, l)
	o.signal()
}

// add is called under mu.
func (o *outbox) add(key value.ObjectKey, l letter) {
	if first, ok := o.pending.objects[key]; ok {
		l = l.merge(first)
	}
	o.pending.objects[key] = l
}

// expect makes Synced wait for arrived of the same resource.
func (o *outbox) expect(resource string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expected[resource] = struct{}{}
}

// arrived tells that all that a resource had at first was put, or that it is not there.
func (o *outbox) arrived(resource string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.expected, resource)
	if len(o.expected) == 0 && !o.told {
		o.told, o.pending.synced = true, true
		o.signal()
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
func (o *outbox) take() letters {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := o.pending
	o.pending = letters{objects: map[value.ObjectKey]letter{}}
	return taken
}

// missing are the resources whose first list has not come.
func (o *outbox) missing() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.expected))
}

// tell hands the letters over: all events in one call.
func (l letters) tell(sink ingest.Sink) {
	events := make([]ingest.Event, 0, len(l.objects))
	for key, o := range l.objects {
		if o.accept {
			sink.Accept(SourceName, key.String())
		}
		if o.reject != nil {
			sink.Reject(*o.reject)
		}
		if o.event != nil {
			events = append(events, *o.event)
		}
	}
	if len(events) > 0 {
		sink.Apply(events)
	}
	if l.synced {
		sink.Synced(SourceName)
	}
}
