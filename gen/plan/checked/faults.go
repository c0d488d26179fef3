package checked

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Fault is a reason why something is left out of what is sent: what was made of an object breaks a rule of its
// receivers, or making it ended in a panic.
type Fault struct {
	// Resource says what is left out: "virtual host a.example.com:80".
	Resource string
	// Field is the path of what is wrong in it; empty after a panic.
	Field string
	// Reason says in one line what is wrong.
	Reason string
	// NotServed tells that nothing is wrong with the object and nothing is left out, but that some clients cannot be
	// served what the object asks for.
	NotServed bool
	// Panicked tells that pilotd is at fault, and not the object.
	Panicked bool
}

// maxFaults bounds the Keys of which faults are kept; those of further ones are only counted, until others go.
const maxFaults = 4096

// Faults are the Keys of which something is left out, with the reasons. What a Key gave is held as long as its faults
// stand, so that it is not made again and again.
//
// A fault stands until one of the objects that it comes from changes. While a change is planned (between Begin and
// Settle) the faults of its objects are in doubt; those whose Keys are asked for again stay.
//
// Safe for concurrent use.
type Faults struct {
	// Immutable once the Faults are in use.
	hook func(key any)
	// doubtful is how many are in doubt, so that asking costs nothing otherwise.
	doubtful atomic.Int64
	// units is how many faults of units of the planner stand, so that Forget costs nothing otherwise.
	units atomic.Int64

	mu sync.Mutex
	// Guarded by mu.
	log      *slog.Logger
	told     func(value.ObjectKey, []Fault)
	standing map[any]*standing                          // by Key
	byObject map[value.ObjectKey]map[*standing]struct{} // by each object that the Key comes from
	doubts   map[any]*standing                          // those of standing that are in doubt
	changed  map[value.ObjectKey]struct{}               // objects of which told is yet to be called
	planning bool                                       // between Begin and Settle
	dropped  uint64                                     // Keys beyond maxFaults
	panics   uint64
	logged   map[string]struct{} // panics that the log has already
}

// standing is what is known of one Key.
type standing struct {
	key     any
	value   any // what the Key gave; nil for a unit of the planner
	list    []found
	objects []value.ObjectKey // that the Key comes from
}

// found is a Fault with the objects that it is about.
type found struct {
	Fault
	of []value.ObjectKey
}

// NewFaults makes an empty registry.
func NewFaults() *Faults {
	return &Faults{
		standing: map[any]*standing{}, byObject: map[value.ObjectKey]map[*standing]struct{}{},
		doubts:  map[any]*standing{},
		changed: map[value.ObjectKey]struct{}{}, logged: map[string]struct{}{},
	}
}

// Hook makes f call hook with each Key before something is made of it, and with each unit before it is worked on. Tests
// use it to cause panics. It must be called before f is used.
func (f *Faults) Hook(hook func(key any)) { f.hook = hook }

// Tell sets who is told of all faults of an object whenever they change, in place of those that were told before, and
// where panics are logged. told must not block or ask for a Key. Both may be nil.
func (f *Faults) Tell(told func(value.ObjectKey, []Fault), log *slog.Logger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told, f.log = told, log
}

// add notes what is wrong with what a Key gave.
func (f *Faults) add(k value.Origin, noun string, v any, list []gen.Fault) {
	st := &standing{key: k, value: v, objects: k.Objects()}
	for _, one := range list {
		of := one.Of
		if len(of) == 0 {
			of = accused(st.objects)
		}
		st.list = append(st.list, found{Fault{Resource: noun + " " + k.Part(), Field: one.Path, Reason: one.Reason},
			of})
	}
	f.note(st)
}

// accused are, of the objects that something comes from, those that say most of it: all of the first one's kind.
func accused(objects []value.ObjectKey) (out []value.ObjectKey) {
	for _, o := range objects {
		if o.Kind == objects[0].Kind {
			out = append(out, o)
		}
	}
	return out
}

func (f *Faults) note(st *standing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.standing[st.key]; !ok && len(f.standing) >= maxFaults {
		f.dropped++
		return
	}
	f.remove(f.standing[st.key])
	f.standing[st.key] = st
	if st.value == nil {
		f.units.Add(1)
	}
	for _, o := range st.objects {
		if f.byObject[o] == nil {
			f.byObject[o] = map[*standing]struct{}{}
		}
		f.byObject[o][st] = struct{}{}
	}
	f.touch(st)
	f.flush()
}

// remove forgets what is known of a Key; nil is nothing. Called under mu.
func (f *Faults) remove(st *standing) {
	if st == nil {
		return
	}
	delete(f.standing, st.key)
	if st.value == nil {
		f.units.Add(-1)
	}
	f.trust(st.key)
	for _, o := range st.objects {
		if delete(f.byObject[o], st); len(f.byObject[o]) == 0 {
			delete(f.byObject, o)
		}
	}
	f.touch(st)
}

// touch notes whose faults are others now. Called under mu.
func (f *Faults) touch(st *standing) {
	for _, one := range st.list {
		for _, o := range one.of {
			f.changed[o] = struct{}{}
		}
	}
}

// trust takes a Key's faults out of doubt. Called under mu.
func (f *Faults) trust(k any) {
	if _, ok := f.doubts[k]; ok {
		delete(f.doubts, k)
		f.doubtful.Add(-1)
	}
}

// confirm notes that a Key is asked for.
func (f *Faults) confirm(k any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trust(k)
}

// Begin puts the faults in doubt that come from what differs. Settle ends it.
func (f *Faults) Begin(d *snapshot.Delta) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.planning = true
	if len(f.standing) == 0 {
		return
	}
	doubt := func(st *standing) {
		if _, ok := f.doubts[st.key]; !ok {
			f.doubts[st.key] = st
			f.doubtful.Add(1)
		}
	}
	if d.All {
		for _, st := range f.standing {
			doubt(st)
		}
		return
	}
	object := func(o value.ObjectKey) {
		for st := range f.byObject[o] {
			doubt(st)
		}
	}
	for o := range d.Objects {
		object(o)
	}
	for _, c := range d.Services {
		for _, svc := range []*value.Service{c.Old, c.New} {
			if svc != nil {
				for _, o := range svc.Objects() {
					object(o)
				}
			}
		}
	}
}

// Settle drops the faults that are still in doubt, and tells what has changed since Begin.
func (f *Faults) Settle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.planning = false
	for _, st := range f.doubts {
		f.remove(st)
	}
	f.flush()
}

// flush tells what has changed, unless more is to come. Called under mu.
func (f *Faults) flush() {
	if f.planning {
		return
	}
	for o := range f.changed {
		if f.told != nil {
			f.told(o, f.of(o))
		}
	}
	clear(f.changed)
}

// of returns the faults that are about an object, each once and in a stable order. Called under mu.
func (f *Faults) of(o value.ObjectKey) (out []Fault) {
	for st := range f.byObject[o] {
		for _, one := range st.list {
			if slices.Contains(one.of, o) && !slices.Contains(out, one.Fault) {
				out = append(out, one.Fault)
			}
		}
	}
	slices.SortFunc(out, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Field, b.Field),
			cmp.Compare(a.Reason, b.Reason))
	})
	return out
}

// Count says how much is left out: of how many Keys, of how many more there was no room to say so, and how many panics
// were caught.
type Count struct {
	Keys            int
	Dropped, Panics uint64
}

// Count returns what is left out now. Anyone may call it.
func (f *Faults) Count() Count {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Count{len(f.standing), f.dropped, f.panics}
}
