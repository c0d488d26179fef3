package ingest

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot/value"
)

// stage is a part of the Store's work on an object, as an owner of reports.
type stage string

// The stages. A fault of one does not end with the success of another.
const (
	taking   stage = "taking"   // an event of the object
	deriving stage = "deriving" // what others are told of it
)

// faults contains panics of the Store's own code: the object over which one happens is left as it was, and reported;
// all others go on. It heals when the same stage of the same object succeeds. Guarded by the Store's mu.
type faults struct {
	// Immutable after NewStore.
	reports *report.Registry

	standing map[report.Subject]struct{}
}

// contain runs f, which works on one object. It reports whether f returned.
func (t *faults) contain(at stage, key value.ObjectKey, f func()) (ok bool) {
	if t.reports == nil { // A joiner without a Store, as tests have it.
		f()
		return true
	}
	subject := report.Subject{Owner: string(at), Key: key}
	defer func() {
		if cause := recover(); cause != nil {
			t.standing[subject] = struct{}{}
			t.reports.Set(subject,
				[]report.Problem{{Key: key, Cause: report.Panicked, Reason: faultOf(cause, debug.Stack())}})
		}
	}()
	f()
	if len(t.standing) > 0 {
		if _, was := t.standing[subject]; was {
			delete(t.standing, subject)
			t.reports.Set(subject, nil)
		}
	}
	return true
}

// faultOf says in one line what panicked and where.
func faultOf(cause any, stack []byte) string {
	const most = 2000
	where := strings.Join(strings.Fields(string(stack)), " ")
	return fmt.Sprintf("a fault of pilotd: panic: %v; what was made of the object before stays in force: %s", cause,
		where[:min(len(where), most)])
}

// definedBy returns an object that a host comes from, to name it in reports.
func (j *joiner) definedBy(host value.ServiceKey) value.ObjectKey {
	if keys := j.hosts[host]; len(keys) > 0 {
		return keys[0]
	}
	return value.ObjectKey{Kind: value.KindService, Namespace: host.Namespace, Name: host.Host}
}
