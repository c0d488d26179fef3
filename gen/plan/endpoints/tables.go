package endpoints

import (
	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
)

// Tables intern Assignments, and the encoded endpoints that these share. Safe for concurrent use.
type Tables struct {
	assignments *encodecache.Table[Key, classes.Assignment]
	encoded     *encodecache.Table[Selection, encoded]
}

// NewTables makes empty Tables.
func NewTables() Tables {
	encodings := encodecache.NewTable(newEncoded)
	return Tables{
		assignments: encodecache.NewTable(func(k Key) *classes.Assignment {
			return &newAssignment(k, encodings.Get(k.Selection)).Assignment
		}),
		encoded: encodings,
	}
}

// Get returns the Assignment of a Key.
func (t Tables) Get(k Key) *classes.Assignment { return t.assignments.Get(k) }

// Sizes returns how many Assignments, and how many Selections, somebody holds.
func (t Tables) Sizes() (assignments, selections int) { return t.assignments.Len(), t.encoded.Len() }
