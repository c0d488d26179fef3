package encodecache

import (
	"iter"
	"slices"
	"sync"
	"sync/atomic"
)

// Run is a sequence of Fragments that several resources share, such as some virtual hosts of RouteConfigurations. When
// it is gathered for the second time its bytes are joined, and each resource that is sent refers to the joined bytes
// without copying. At the first time they are sent from the Fragments, because a copy might never be used again. A Run
// exists for as long as a response that is being sent, or a cache, refers to it.
type Run struct {
	// Immutable after NewRun.
	pieces [][]byte
	size   int
	// uses counts how often the Run was gathered.
	uses atomic.Int32

	once   sync.Once
	joints [][]byte // pieces after joining; made once
}

// NewRun returns a Run of Fragments.
func NewRun(fragments iter.Seq[*Fragment]) *Run {
	r := &Run{}
	for f := range fragments {
		r.pieces = append(r.pieces, f.bytes)
		r.size += len(f.bytes)
	}
	return r
}

// joined returns the bytes in as few pieces as possible.
func (r *Run) joined() [][]byte {
	r.once.Do(func() { r.joints = joined(r.pieces) })
	return r.joints
}

// Len returns the number of bytes.
func (r *Run) Len() int { return r.size }

// Shared reports whether the Run was gathered more than once, and so is worth keeping.
func (r *Run) Shared() bool { return r.uses.Load() > 1 }

// joined joins neighbouring pieces below maxJoint.
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

// InRuns makes e an Entry that is gathered from runs, whose bytes together are those of its parts in their order. Such
// an Entry keeps no EncodedAny. The maker of the Entry calls InRuns before other code sees it.
func (e *Entry) InRuns(runs iter.Seq[*Run]) *Entry {
	e.body.(*sequence).runs, e.inRuns = runs, true
	return e
}

// addRun appends the bytes of a run.
func (g *gather) addRun(r *Run) {
	g.runs = append(g.runs, r)
	if r.uses.Add(1) > 1 {
		for _, p := range r.joined() {
			g.add(p)
		}
		return
	}
	for _, p := range r.pieces {
		g.addAsItLies(p)
	}
}

// room returns an estimate of the bytes that gathering the Any copies.
func (e *Entry) room() int {
	if !e.inRuns {
		return e.anyLen()
	}
	return min(e.anyLen(), len(e.typeURL)+4*copyBelow)
}
