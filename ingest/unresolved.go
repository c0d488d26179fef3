package ingest

import (
	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot/value"
)

// resolver is the Store's name as an owner of reports about what objects name.
const resolver = "resolver"

// unresolved is what objects name that is not there or cannot be used. It depends on other objects, so it is found
// where those are joined: flush begins anew with each object that it derives, and the Store tells what differs. Guarded
// by the Store's mu.
type unresolved struct {
	// now is what was found of the objects that were derived since the Store told last; an object without problems has
	// an empty list.
	now map[value.ObjectKey][]report.Problem
	// told are the objects of which the Store told something.
	told set[value.ObjectKey]
}

func newUnresolved() unresolved {
	return unresolved{now: map[value.ObjectKey][]report.Problem{}, told: set[value.ObjectKey]{}}
}

// begin forgets what was found of an object, which is derived anew.
func (u *unresolved) begin(key value.ObjectKey) {
	delete(u.now, key)
	if _, ok := u.told[key]; ok {
		u.now[key] = nil
	}
}

// add takes one thing that an object names at a field.
func (u *unresolved) add(key value.ObjectKey, field, reason string) {
	u.now[key] = append(u.now[key], report.Problem{Key: key, Field: field, Cause: report.Unresolved, Reason: reason})
}

// tellOfUnresolved reports what differs since the last time. Called under mu, after flush.
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
