package plan

import (
	"cmp"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
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
	// NotServed: nothing is wrong with the object, and nothing is left out; some clients cannot be served what it asks
	// for.
	NotServed bool
	// Panicked: the fault is in pilotd and not in the object.
	Panicked bool
}

// maxFaults bounds the Keys of which faults are kept; those of further ones are only counted, until others go.
const maxFaults = 4096

// faults are the Keys of which something is left out, with the reasons. What a Key gave is held as long as its faults
// stand, so that it is not made again and again.
//
// A fault stands until one of the objects that it comes from changes. While a change is planned (between begin and
// settle) the faults of its objects are in doubt; those whose Keys are asked for again stay.
//
// Safe for concurrent use.
type faults struct {
	// Immutable after Tables are made, but for hook, which tests set before use.
	hook func(key any)
	// doubtful is how many are in doubt, so that asking costs nothing otherwise.
	doubtful atomic.Int64
	// units is how many faults of units of the planner stand.
	units atomic.Int64

	mu sync.Mutex
	// Guarded by mu.
	log      *slog.Logger
	told     func(value.ObjectKey, []Fault)
	standing map[any]*standing                          // by Key
	byObject map[value.ObjectKey]map[*standing]struct{} // of those that name an object
	doubts   map[any]*standing                          // a part of standing
	changed  map[value.ObjectKey]struct{}               // to be told
	planning bool                                       // between begin and settle
	dropped  uint64                                     // those that there was no room for
	panics   uint64
	logged   map[string]struct{} // panics
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

func newFaults() *faults {
	return &faults{
		standing: map[any]*standing{}, byObject: map[value.ObjectKey]map[*standing]struct{}{},
		doubts:  map[any]*standing{},
		changed: map[value.ObjectKey]struct{}{}, logged: map[string]struct{}{},
	}
}

// tell sets who is told of all faults of an object whenever they change, in place of those that were told before, and
// where panics are logged. told must not block or call the Tables.
func (f *faults) tell(told func(value.ObjectKey, []Fault), log *slog.Logger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told, f.log = told, log
}

// add notes what is wrong with what a Key gave.
func (f *faults) add(k value.Origin, noun string, v any, list []gen.Fault) {
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

// panicked notes that making something of a Key panicked, and logs it.
func (f *faults) panicked(k value.Origin, noun string, v any, p any) {
	st := &standing{key: k, value: v}
	part := ""
	if guarded(func() { st.objects, part = k.Objects(), k.Part() }) != nil {
		part = fmt.Sprintf("%T", k)
	}
	one := panicFault(strings.TrimSpace(noun+" "+part), p)
	st.list = []found{{one, accused(st.objects)}}
	f.logPanic(one, st.objects)
	f.note(st)
}

func panicFault(what string, p any) Fault {
	return Fault{Resource: what, Reason: fmt.Sprintf("internal error: %v", p), Panicked: true}
}

// contain calls do, the work for one unit of the planner (a base, a class, a client). A panic in it is caught: it is
// counted, logged once with its stack, and stands as a Fault of the unit about objects, until contain succeeds for it.
// It reports whether do came to its end.
func (f *faults) contain(unit any, what string, objects []value.ObjectKey, do func()) (ok bool) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		one := panicFault(what, p)
		f.logPanic(one, objects)
		f.note(&standing{key: unit, objects: objects, list: []found{{one, objects}}})
	}()
	if f.hook != nil {
		f.hook(unit)
	}
	do()
	if f.units.Load() > 0 {
		f.forget(unit)
	}
	return true
}

// forget drops the Fault of a unit, which may have none.
func (f *faults) forget(unit any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if st := f.standing[unit]; st != nil {
		f.remove(st)
		f.flush()
	}
}

// maxLogged bounds how many different panics are remembered as logged.
const maxLogged = 256

// logPanic counts a panic and logs it with the stack of the goroutine, which is unwinding, unless the same was logged
// before.
func (f *faults) logPanic(one Fault, objects []value.ObjectKey) {
	f.mu.Lock()
	f.panics++
	log := f.log
	noun, _, _ := strings.Cut(one.Resource, " ")
	same := noun + one.Reason
	if _, known := f.logged[same]; known || len(f.logged) >= maxLogged {
		log = nil
	}
	f.logged[same] = struct{}{}
	f.mu.Unlock()
	if log != nil {
		log.Error("a panic was caught: what depends on it is left out", "unit", one.Resource, "panic", one.Reason,
			"objects", fmt.Sprint(objects),
			"stack", string(debug.Stack()))
	}
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

func (f *faults) note(st *standing) {
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
func (f *faults) remove(st *standing) {
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
func (f *faults) touch(st *standing) {
	for _, one := range st.list {
		for _, o := range one.of {
			f.changed[o] = struct{}{}
		}
	}
}

// trust takes a Key's faults out of doubt. Called under mu.
func (f *faults) trust(k any) {
	if _, ok := f.doubts[k]; ok {
		delete(f.doubts, k)
		f.doubtful.Add(-1)
	}
}

// confirm notes that a Key is asked for.
func (f *faults) confirm(k any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trust(k)
}

// begin puts the faults in doubt that come from what differs between two Snapshots.
func (f *faults) begin(old, now *snapshot.Snapshot, d *snapshot.Delta) {
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
	for k := range d.Services {
		for _, n := range []*snapshot.Snapshot{old, now} {
			if svc := n.Service(k); svc != nil {
				for _, o := range svc.Objects() {
					object(o)
				}
			}
		}
	}
}

// settle drops the faults that are still in doubt, and tells what has changed.
func (f *faults) settle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.planning = false
	for _, st := range f.doubts {
		f.remove(st)
	}
	f.flush()
}

// flush tells what has changed, unless more is to come. Called under mu.
func (f *faults) flush() {
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

// of are the faults that are about an object, each once and in a stable order. Called under mu.
func (f *faults) of(o value.ObjectKey) (out []Fault) {
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

// guarded calls f and returns what it panicked with; nil if it did not.
func guarded(f func()) (p any) {
	defer func() { p = recover() }()
	f()
	return nil
}

// Faults are what is known to be left out: of how many Keys, of how many more there was no room to say so, and how many
// panics were caught.
type Faults struct {
	Keys            int
	Dropped, Panics uint64
}

// Faults is what is left out now. Anyone may call it.
func (t *Tables) Faults() Faults {
	t.faults.mu.Lock()
	defer t.faults.mu.Unlock()
	return Faults{len(t.faults.standing), t.faults.dropped, t.faults.panics}
}
