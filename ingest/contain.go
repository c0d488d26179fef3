package ingest

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot/value"
)

// stage names the step of the Store's work in which a fault happened, as the owner of its report.
type stage string

// Stages. The success of one stage does not end the report of a fault in another.
const (
	taking   stage = "taking"   // applying an event of the object
	deriving stage = "deriving" // computing what follows from the object
)

// faults contains panics of the Store's own code. If a panic happens while the Store works on an object, that object
// stays as it was and is reported, and all others go on. The report ends when the same stage of the same object
// succeeds. Guarded by the Store's mu.
type faults struct {
	// Immutable after NewStore.
	reports *report.Registry

	standing map[report.Subject]struct{}
}

// contain runs f, which works on one object, and reports whether f returned without a panic.
func (t *faults) contain(at stage, key value.ObjectKey, f func()) (ok bool) {
	if t.reports == nil { // Tests use a joiner without a Store.
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

// faultOf returns a line that says what panicked and where.
func faultOf(cause any, stack []byte) string {
	const most = 2000
	where := strings.Join(strings.Fields(string(stack)), " ")
	return fmt.Sprintf("a fault of pilotd: panic: %v; what was made of the object before stays in force: %s", cause,
		where[:min(len(where), most)])
}

// definedBy returns one of the objects that define a host, to name it in a report.
func (j *joiner) definedBy(host value.ServiceKey) value.ObjectKey {
	if keys := j.hosts[host]; len(keys) > 0 {
		return keys[0]
	}
	return value.ObjectKey{Kind: value.KindService, Namespace: host.Namespace, Name: host.Host}
}
