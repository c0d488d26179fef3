// Package section edits the resources of one type, and gathers what several resources have in common.
package section

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// Edits are resources that come, by their names, and names of those that go.
type Edits = chunked.Edits[*encodecache.Entry]

// Put puts a resource, or takes it away where it is left out.
func Put(e *Edits, r *encodecache.Entry) {
	if r.Absent() {
		e.Put(r.Name(), nil)
	} else {
		e.Put(r.Name(), r)
	}
}
