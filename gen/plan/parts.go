package plan

import (
	"iter"
	"slices"

	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/gen/plan/source"
)

// sources are the Sources of the types that a base has as a whole.
type sources []source.Source

func newSources(*checked.Faults) sources {
	return nil
}

// advance is what the sources make of the parts of from, which are old, for to. hosts are those that differ; without
// old parts, or if hosts is nil, all is made from nothing.
func (list sources) advance(old []source.Part, from, to source.At, hosts iter.Seq[string]) []source.Part {
	var next []source.Part // nil while it is what there was
	for i, s := range list {
		var was, is source.Part
		if old == nil || hosts == nil {
			is = s.Make(to)
		} else {
			was = old[i]
			is = s.Advance(was, from, to, hosts)
		}
		if was == is {
			continue
		}
		if next == nil {
			next = append(make([]source.Part, 0, len(list)), old...)[:len(list)]
		}
		next[i] = is
	}
	if next == nil {
		return old
	}
	return next
}

// follow is what the sources make of the parts of a member, where the outsider's went from was to is.
func (list sources) follow(old, was, is []source.Part, at source.At) []source.Part {
	if slices.Equal(old, was) {
		return is
	}
	next := make([]source.Part, len(list))
	for i, s := range list {
		next[i] = s.Follow(old[i], was[i], is[i], at)
	}
	return next
}
