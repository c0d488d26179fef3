package checked

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/pilotd/pilotd/snapshot/value"
)

// panicked notes that making something of a Key panicked, and logs it.
func (f *Faults) panicked(k value.Origin, noun string, v any, p any) {
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

// Contain calls do, the work for one unit of the planner: what many proxies share, a class, a client. It catches a
// panic, counts it, logs it once with its stack, and keeps it as a Fault of the unit about objects until Contain
// succeeds for that unit. what names the unit in reports. Contain reports whether do came to its end.
func (f *Faults) Contain(unit any, what string, objects []value.ObjectKey, do func()) (ok bool) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		one := panicFault(what, p)
		f.logPanic(one, objects)
		f.note(&standing{key: unit, objects: objects, list: []found{{one, objects}}})
	}()
	f.Enter(unit)
	do()
	f.Forget(unit)
	return true
}

// Enter is what Contain does before it works on a unit, for units that are worked on many at once: it tells the Hook.
func (f *Faults) Enter(unit any) {
	if f.hook != nil {
		f.hook(unit)
	}
}

// maxLogged bounds how many different panics are remembered as logged.
const maxLogged = 256

// logPanic counts a panic and logs it with the stack of the goroutine, which is unwinding, unless the same was logged
// before.
func (f *Faults) logPanic(one Fault, objects []value.ObjectKey) {
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

// Forget drops the Fault of a unit, which may have none.
func (f *Faults) Forget(unit any) {
	if f.units.Load() > 0 {
		f.drop(unit)
	}
}

func (f *Faults) drop(key any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if st := f.standing[key]; st != nil {
		f.remove(st)
		f.flush()
	}
}

// NotServed notes under a key of the caller's that some clients cannot be served what an object sets in a field, and
// why. It stands until the object changes, or until Served.
func (f *Faults) NotServed(key any, o value.ObjectKey, field, reason string) {
	of := []value.ObjectKey{o}
	one := Fault{Field: field, Reason: reason, NotServed: true}
	f.note(&standing{key: key, value: key, objects: of, list: []found{{one, of}}})
}

// Served takes back what NotServed noted under a key.
func (f *Faults) Served(key any) { f.drop(key) }

// guarded calls f and returns what it panicked with; nil if it did not.
func guarded(f func()) (p any) {
	defer func() { p = recover() }()
	f()
	return nil
}
