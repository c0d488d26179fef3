// Package section says what the resources of one type are held in, and how they are edited.
package section

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// Section is a sorted, persistent list of resources by name. Equal pointers in two Sections mean equal resources;
// different pointers mean nothing: content versions decide what is sent.
type Section = chunked.Map[*encodecache.Entry]

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
