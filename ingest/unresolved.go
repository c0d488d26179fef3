package ingest

import (
	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot/value"
)

// resolver is the owner name under which the Store reports references that cannot be resolved.
const resolver = "resolver"

// unresolved records references in objects to something that does not exist or cannot be used. This depends on other
// objects, so it is found while objects are joined: flush starts anew for each object that it derives, and the Store
// reports what changed. Guarded by the Store's mu.
type unresolved struct {
	// now has the problems of objects derived since the Store reported last; an object without problems has an empty
	// list.
	now map[value.ObjectKey][]report.Problem
	// told are the objects with a standing report.
	told set[value.ObjectKey]
}

func newUnresolved() unresolved {
	return unresolved{now: map[value.ObjectKey][]report.Problem{}, told: set[value.ObjectKey]{}}
}

// begin clears the problems of an object that is about to be derived.
func (u *unresolved) begin(key value.ObjectKey) {
	delete(u.now, key)
	if _, ok := u.told[key]; ok {
		u.now[key] = nil
	}
}

// add records a problem with a field of an object.
func (u *unresolved) add(key value.ObjectKey, field, reason string) {
	u.now[key] = append(u.now[key], report.Problem{Key: key, Field: field, Cause: report.Unresolved, Reason: reason})
}

// tellOfUnresolved reports what changed since the last call. Called under mu, after flush.
func (s *Store) tellOfUnresolved() {
	u := &s.joiner.unresolved
	for key, problems := range u.now {
		for i := range problems {
			problems[i].Source = s.objects[key].inForceSource()
		}
		s.settings.Reports.Set(report.Subject{Owner: resolver, Key: key}, problems)
		if len(problems) > 0 {
			u.told.add(key)
		} else {
			delete(u.told, key)
		}
	}
	clear(u.now)
}
