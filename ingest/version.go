package ingest

import (
	"cmp"
	"slices"

	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot/value"
)

// version is the state of a key in one source.
type version struct {
	source string
	rank   int
	name   objectName // differs between versions only for the mesh configuration
	// good is the last object that was admitted, nil if there was none.
	good any
	// instead is in force while no source has a good version.
	instead any
	// unserved are the fields that good sets without effect.
	unserved []report.Problem
	// refused says why the newest object is refused; nil if the newest one is good.
	refused *Rejection
}

// versions are those of one key, the source with precedence first.
type versions []version

// inForce returns the object in force, nil if there is none.
func (v versions) inForce() any {
	for i := range v {
		if v[i].good != nil {
			return v[i].good
		}
	}
	for i := range v {
		if v[i].instead != nil {
			return v[i].instead
		}
	}
	return nil
}

// inForceSource returns the source of the object in force.
func (v versions) inForceSource() string {
	for i := range v {
		if v[i].good != nil {
			return v[i].source
		}
	}
	return ""
}

// version returns held after e.
func (s *Store) version(held versions, e Event) versions {
	find := func() int {
		return slices.IndexFunc(held, func(v version) bool { return v.source == e.Source && v.name == nameOf(e.Key) })
	}
	i := find()
	if e.Object == nil {
		if i < 0 {
			return held
		}
		s.standing(held[i].refused, nil)
		return slices.Delete(slices.Clone(held), i, i+1)
	}
	if i < 0 {
		held = append(slices.Clone(held), version{source: e.Source, rank: s.rank(e.Source), name: nameOf(e.Key)})
		slices.SortFunc(held, func(a, b version) int {
			return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.source, b.source),
				cmp.Compare(a.name.String(), b.name.String()))
		})
		i = find()
	}
	was := held[i].refused
	k := s.joiner.kinds[e.Key.Kind]
	if k != nil && k.same != nil && k.same(held[i].good, e.Object) {
		held[i].refused = nil
	} else if p := k.admit(e.Key, e.Object, s.judge.limits); p != nil {
		held[i].refused = s.refuse(e, *p)
		if k != nil && k.instead != nil {
			held[i].instead = k.instead(e.Object)
		}
	} else {
		held[i].good, held[i].refused, held[i].unserved = e.Object, nil, s.judge.unserved(k, e)
		held[i].instead = nil
	}
	s.standing(was, held[i].refused)
	return held
}

func (s *Store) rank(source string) int {
	if i := slices.Index(s.order, source); i >= 0 {
		return i
	}
	return len(s.order)
}

// Rejections returns all objects and files that are not in force as they stand now, in a stable order.
func (s *Store) Rejections() []Rejection {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Rejection
	for _, held := range s.objects {
		for _, v := range held {
			if v.refused != nil {
				out = append(out, *v.refused)
			}
		}
	}
	for _, list := range s.unreadable {
		out = append(out, list...)
	}
	slices.SortFunc(out, func(a, b Rejection) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Key.String(), b.Key.String()),
			cmp.Compare(a.Where, b.Where))
	})
	return out
}

// problem is the reason to refuse an object, and the field that it is about.
type problem struct{ field, reason string }

// kindOf returns the kind of a Rejection for metrics: that of its key, or "File" for a file, which has none.
func kindOf(r Rejection) value.Kind {
	if r.Key.Kind == "" {
		return "File"
	}
	return r.Key.Kind
}
