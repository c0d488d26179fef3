package encodecache

import (
	"iter"
	"slices"
	"sync"
	"sync/atomic"
)

// Run is a sequence of Fragments that several resources have in common, such as some virtual hosts of
// RouteConfigurations. Its bytes are joined when it is gathered for the second time: a resource that is sent refers to
// them and copies nothing. What is gathered once is sent from where it lies, for a copy would only take memory. It
// lives while somebody sends it or keeps it for those who come next.
type Run struct {
	// Immutable after NewRun.
	pieces [][]byte
	size   int
	// uses counts how often it was gathered.
	uses atomic.Int32

	once   sync.Once
	joints [][]byte // pieces, joined; made once
}

// NewRun makes a Run of Fragments.
func NewRun(fragments iter.Seq[*Fragment]) *Run {
	r := &Run{}
	for f := range fragments {
		r.pieces = append(r.pieces, f.bytes)
		r.size += len(f.bytes)
	}
	return r
}

// joined returns the bytes in as few pieces as there may be.
func (r *Run) joined() [][]byte {
	r.once.Do(func() { r.joints = joined(r.pieces) })
	return r.joints
}

// Len returns the number of bytes.
func (r *Run) Len() int { return r.size }

// Shared reports whether the run was gathered more than once: it is worth keeping.
func (r *Run) Shared() bool { return r.uses.Load() > 1 }

// joined returns pieces with neighbours below maxJoint in one.
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

// InRuns makes the Entry one that is gathered out of runs, which together have the bytes of its parts, in their order.
// Such an Entry has no EncodedAny. Whoever has made the Entry calls InRuns before anybody else gets it.
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

// room returns about what gathering the Any copies.
func (e *Entry) room() int {
	if !e.inRuns {
		return e.anyLen()
	}
	return min(e.anyLen(), len(e.typeURL)+4*copyBelow)
}
