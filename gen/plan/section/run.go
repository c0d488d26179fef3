package section

import (
	"slices"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// Runs keeps one Run for each chunk of Fragments: whoever holds the same chunk refers to the same bytes.
type Runs = *encodecache.Table[RunKey, encodecache.Run]

// RunKey is the chunk that a Run is made from.
type RunKey struct {
	Chunk *chunked.Chunk[*encodecache.Fragment]
}

// NewRuns makes an empty table of Runs.
func NewRuns() Runs { return encodecache.NewTable(newRun) }

func newRun(k RunKey) *encodecache.Run {
	return encodecache.NewRun(slices.Values(k.Chunk.Values()))
}
