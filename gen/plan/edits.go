package plan

import (
	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/gen/plan/section"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// edits collects what differs between two bases.
type edits struct {
	clusters, listeners, routes section.Edits
	assignments                 chunked.Edits[*classes.Assignment]
	groups                      chunked.Edits[*classes.AssignmentGroup]
}
