package plan

import (
	"iter"
	"slices"

	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/gen/plan/source"
	"github.com/pilotd/pilotd/xdstype"
)

// sources are the Sources of the types that a base has as a whole, in an order that stays. A base has a Part of each,
// or nil of one that is idle.
type sources struct {
	all []source.Source // immutable after newSources
	// idle are the types that are made on demand and that nobody asks for. Owned by the config goroutine.
	idle xdstype.Set
}

func newSources(*checked.Faults) sources { return sourcesOf() }

// sourcesOf are those Sources, of which nobody asks for anything yet.
func sourcesOf(all ...source.Source) sources {
	list := sources{all: all}
	for _, s := range all {
		if s.Type().Row().OnDemand {
			list.idle = list.idle.With(s.Type())
		}
	}
	return list
}

// advance is what the sources make of the parts of from, which are old, for to. hosts are those that differ; without
// old parts, or if hosts is nil, all is made from nothing.
func (list *sources) advance(old []source.Part, from, to source.At, hosts iter.Seq[string]) []source.Part {
	var next []source.Part // nil while it is what there was
	for i, s := range list.all {
		var was, is source.Part
		if old != nil {
			was = old[i]
		}
		switch {
		case list.idle.Has(s.Type()):
		case was == nil || hosts == nil:
			is = s.Make(to)
		default:
			is = s.Advance(was, from, to, hosts)
		}
		if was == is && old != nil {
			continue
		}
		if next == nil {
			next = append(make([]source.Part, 0, len(list.all)), old...)[:len(list.all)]
		}
		next[i] = is
	}
	if next == nil {
		return old
	}
	return next
}

// follow is what the sources make of the parts of a member, where the outsider's went from was to is.
func (list *sources) follow(old, was, is []source.Part) []source.Part {
	if slices.Equal(old, was) {
		return is
	}
	next := slices.Clone(old)
	for i, s := range list.all {
		if was[i] != is[i] {
			next[i] = s.Follow(old[i], was[i], is[i])
		}
	}
	return next
}
