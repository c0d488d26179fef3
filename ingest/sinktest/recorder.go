// Package sinktest has a Sink for the tests of sources. It records what it is told, and lets tests wait for a call
// instead of sleeping.
package sinktest

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Recorder is a Sink that records the calls it receives.
type Recorder struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each call
	told    Told          // guarded by mu
	block   chan struct{} // if not nil, Apply waits for it
}

// Told is everything that sources have told so far.
type Told struct {
	// Applies are the calls of Apply.
	Applies [][]ingest.Event
	// Objects are the objects in force.
	Objects map[value.ObjectKey]ingest.Event
	// Rejected are the standing rejections, by their location: the file, or the object's key if there is none.
	Rejected map[string][]ingest.Rejection
	// Synced are the sources that have called Synced.
	Synced []string
}

// New returns an empty Recorder.
func New() *Recorder {
	return &Recorder{changed: make(chan struct{}), told: Told{
		Objects: map[value.ObjectKey]ingest.Event{}, Rejected: map[string][]ingest.Rejection{},
	}}
}

// Block makes Apply wait until the caller calls release.
func (r *Recorder) Block() (release func()) {
	block := make(chan struct{})
	r.record(func(*Told) { r.block = block })
	return func() {
		r.record(func(*Told) { r.block = nil })
		close(block)
	}
}

func (r *Recorder) record(f func(*Told)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.told)
	close(r.changed)
	r.changed = make(chan struct{})
}

// Apply implements ingest.Sink.
func (r *Recorder) Apply(events []ingest.Event) {
	r.mu.Lock()
	block := r.block
	r.mu.Unlock()
	if block != nil {
		<-block
	}
	r.record(func(t *Told) {
		t.Applies = append(t.Applies, events)
		for _, e := range events {
			if e.Object == nil {
				delete(t.Objects, e.Key)
			} else {
				t.Objects[e.Key] = e
			}
		}
	})
}

// Reject implements ingest.Sink.
func (r *Recorder) Reject(b ingest.Rejection) {
	place := b.Where
	if i := strings.LastIndexByte(place, ':'); i > 0 {
		place = place[:i]
	}
	if place == "" {
		place = b.Key.String()
	}
	r.record(func(t *Told) { t.Rejected[place] = append(t.Rejected[place], b) })
}

// Accept implements ingest.Sink.
func (r *Recorder) Accept(_, place string) {
	r.record(func(t *Told) { delete(t.Rejected, place) })
}

// Synced implements ingest.Sink.
func (r *Recorder) Synced(source string) {
	r.record(func(t *Told) { t.Synced = append(t.Synced, source) })
}

// Now returns a copy of what has been told so far.
func (r *Recorder) Now() *Told {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Told{
		Applies: slices.Clone(r.told.Applies), Objects: maps.Clone(r.told.Objects),
		Rejected: maps.Clone(r.told.Rejected),
		Synced:   slices.Clone(r.told.Synced),
	}
}

// Until waits, from call to call, until cond holds.
func (r *Recorder) Until(t testing.TB, what string, cond func(*Told) bool) {
	t.Helper()
	limit := time.After(30 * time.Second)
	for {
		r.mu.Lock()
		ok, changed := cond(&r.told), r.changed
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-limit:
			told := r.Now()
			var keys []string
			for k := range told.Objects {
				keys = append(keys, k.String())
			}
			slices.Sort(keys)
			t.Fatalf("waited in vain for %s; have %v, rejected %v, synced %v", what, keys, told.Rejected, told.Synced)
		}
	}
}
