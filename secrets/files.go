package secrets

import (
	"context"
	"sync"
)

// Files is the Source of objects that were read from files: it has them all, whoever wants them. Its methods may be
// called by any goroutine; none blocks but Run.
type Files struct {
	// Immutable after New.
	tell func(Object, Found)
	wake chan struct{}

	mu sync.Mutex
	// Guarded by mu.
	ready   bool // all that there was at first has been read
	objects map[Object]*Material
	wanted  map[Object]struct{}
	due     map[Object]struct{} // of which the Store is to be told
}

// NewFiles makes a Source of a Store without objects.
func NewFiles(s *Store) *Files {
	f := &Files{wake: make(chan struct{}, 1), objects: map[Object]*Material{}, wanted: map[Object]struct{}{},
		due: map[Object]struct{}{}}
	f.tell = s.AddSource(f)
	return f
}

// Set takes what an object has; nil takes the object away. It reads the data, which takes up to some milliseconds.
func (f *Files) Set(o Object, d Data) {
	var m *Material
	if d != nil {
		m = Read(d)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m == nil {
		delete(f.objects, o)
	} else {
		f.objects[o] = m
	}
	f.remind(o)
}

// Ready says that all has been read that there was at first: what is wanted and was not set is not there.
func (f *Files) Ready() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ready = true
	for o := range f.wanted {
		f.remind(o)
	}
}

// Want implements Source.
func (f *Files) Want(o Object, yes bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !yes {
		delete(f.wanted, o)
		delete(f.due, o)
		return
	}
	f.wanted[o] = struct{}{}
	f.remind(o)
}

// remind has Run tell of an object, if it is wanted and known. The caller holds mu.
func (f *Files) remind(o Object) {
	if _, wanted := f.wanted[o]; !wanted || !f.ready {
		return
	}
	f.due[o] = struct{}{}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Run tells the Store what it wants to know, until ctx ends.
func (f *Files) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		}
		for o, found := range f.take() {
			f.tell(o, found)
		}
	}
}

// take returns what is due.
func (f *Files) take() map[Object]Found {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make(map[Object]Found, len(f.due))
	for o := range f.due {
		out[o] = Found{Material: f.objects[o]}
	}
	clear(f.due)
	return out
}
