package plan

import (
	"iter"
	"slices"

	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/gen/plan/nametable"
	"github.com/pilotd/pilotd/gen/plan/source"
	"github.com/pilotd/pilotd/xdstype"
)

// sources are the Sources of the types that a base has as a whole, in an order that stays. A base has a Part of each,
// or nil of one that is idle.
type sources struct {
	all []source.Source // immutable after newSources
	// nothing is a Part of each that is idle: all bases have it in common while nobody asks for any. Immutable.
	nothing []source.Part
	// idle are the types that are made on demand and that nobody asks for. Owned by the config goroutine.
	idle xdstype.Set
}

func newSources(f *checked.Faults) sources { return sourcesOf(nametable.New(f)) }

// sourcesOf returns the Sources with the mark that nobody asks for anything yet.
func sourcesOf(all ...source.Source) sources {
	list := sources{all: all, nothing: make([]source.Part, len(all))}
	for _, s := range all {
		if s.Type().Row().OnDemand {
			list.idle = list.idle.With(s.Type())
		}
	}
	return list
}

// resting reports whether nobody asks for anything that the sources make.
func (list *sources) resting() bool {
	return !slices.ContainsFunc(list.all, func(s source.Source) bool { return !list.idle.Has(s.Type()) })
}

// advance returns what the sources make of the parts of from, which are old, for to. hosts are those that differ;
// without old parts, or if hosts is nil, all is made from nothing.
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
	switch {
	case next == nil:
		return old
	case slices.Equal(next, list.nothing):
		return list.nothing
	}
	return next
}

// step returns what the parts of an outsider, which went from was to is, mean for those that follow it.
func (list *sources) step(was, is []source.Part) partsStep {
	s := partsStep{was: was, is: is}
	if slices.Equal(was, is) {
		return s
	}
	s.follow = make([]func(source.Part) source.Part, len(list.all))
	for i, from := range list.all {
		if was[i] != is[i] {
			s.follow[i] = from.Follow(was[i], is[i])
		}
	}
	return s
}

// partsStep is what a change makes of the parts of an outsider.
type partsStep struct {
	was, is []source.Part
	follow  []func(source.Part) source.Part // by Source: nil where nothing differs; none if nothing does
}

// empty reports whether nothing differs.
func (s *partsStep) empty() bool { return s.follow == nil }

// of returns the parts of a member, brought to where those of the outsider are now.
func (s *partsStep) of(old []source.Part) []source.Part {
	if s.empty() {
		return old
	}
	if slices.Equal(old, s.was) {
		return s.is
	}
	next := slices.Clone(old)
	for i, follow := range s.follow {
		if follow != nil {
			next[i] = follow(old[i])
		}
	}
	return next
}
