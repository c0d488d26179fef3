package encodecache

import (
	"iter"
	"slices"
	"sync/atomic"
)

// Run is a sequence of Fragments that several resources have in common, such as some virtual hosts of
// RouteConfigurations, with the bytes joined once: a resource that is sent refers to them and copies nothing. It lives
// while somebody sends it or keeps it for those who come next.
type Run struct {
	// Immutable after NewRun.
	pieces [][]byte
	size   int
	// uses counts how often it was gathered.
	uses atomic.Int32
}

// NewRun joins Fragments.
func NewRun(fragments iter.Seq[*Fragment]) *Run {
	r := &Run{}
	var pieces [][]byte
	for f := range fragments {
		pieces = append(pieces, f.bytes)
		r.size += len(f.bytes)
	}
	r.pieces = joined(pieces)
	return r
}

// Len returns the number of bytes.
func (r *Run) Len() int { return r.size }

// Shared reports whether the run was gathered more than once: it is worth keeping.
func (r *Run) Shared() bool { return r.uses.Load() > 1 }

// joined are pieces with neighbours below maxJoint in one.
func joined(pieces [][]byte) (out [][]byte) {
	for len(pieces) > 0 {
		n := 0
		for n < len(pieces) && len(pieces[n]) < maxJoint {
			n++
		}
		if n > 1 {
			out = append(out, slices.Concat(pieces[:n]...))
		} else {
			out, n = append(out, pieces[0]), 1
		}
		pieces = pieces[n:]
	}
	return out
}

// InRuns has the Entry gathered out of runs, which must have the bytes of its parts together, in their order. It has no
// EncodedAny then. It must be called before anybody else has the Entry.
func (e *Entry) InRuns(runs iter.Seq[*Run]) *Entry {
	e.runs = runs
	return e
}

// addRun appends the bytes of a run.
func (g *gather) addRun(r *Run) {
	r.uses.Add(1)
	g.runs = append(g.runs, r)
	for _, p := range r.pieces {
		g.add(p)
	}
}

// room is about what gathering the Any copies.
func (e *Entry) room() int {
	if e.runs == nil {
		return e.anyLen()
	}
	return min(e.anyLen(), len(e.typeURL)+4*copyBelow)
}
