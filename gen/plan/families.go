package plan

import (
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// familyOf is the family of a scope, with its outsider; nil if it is of none.
func (p *Planner) familyOf(facts scope.Facts, labels value.Labels) *family {
	if p.apart || !familial(&facts) {
		return nil
	}
	f := p.families[familyFacts(facts)]
	if f == nil {
		f = p.tables.newFamily(facts, labels)
		p.foundFamily(f, nil)
	}
	return f
}

// foundFamily makes the outsider of a family from nothing, if that does not panic.
func (p *Planner) foundFamily(f *family, objects []value.ObjectKey) {
	p.tables.faults.Contain(f, "proxies of any namespace", objects, func() {
		f.found(p.tables, p.knownOf(p.current.Snapshot))
	})
}

// newBase makes a base anew: as a difference from its family's outsider, if it has one.
func (p *Planner) newBase(f *family, facts scope.Facts, labels value.Labels) *base {
	k := p.knownOf(p.current.Snapshot)
	if f != nil && f.outsider != nil {
		return f.member(p.tables, k, facts.Namespace)
	}
	return p.tables.baseOf(k, facts, labels)
}

// join counts a base in its family.
func (p *Planner) join(bs *baseState) {
	if bs.family != nil {
		bs.family.members++
		p.families[familyFacts(bs.facts)] = bs.family
	}
}

// quit is that a base is gone. A family without members goes too.
func (p *Planner) quit(bs *baseState) {
	f := bs.family
	if f == nil {
		return
	}
	if f.members--; f.members == 0 {
		delete(p.families, familyFacts(bs.facts))
		p.tables.faults.Forget(f)
	}
}

// advanceFamilies brings the outsiders to v. One for which that panics is made from nothing when the next change comes;
// its members are advanced by themselves until then.
func (p *Planner) advanceFamilies(v *snapshot.View, touch *scope.Affected, objects []value.ObjectKey) {
	for _, f := range p.families {
		if touch.All || f.outsider == nil {
			p.foundFamily(f, objects)
			continue
		}
		p.tables.faults.Contain(f, "proxies of any namespace", objects, func() {
			f.advance(p.tables, v.Snapshot, touch)
		})
	}
}

// knownOf is what is known of the Snapshot that is planned.
func (s *state) knownOf(n *snapshot.Snapshot) *scope.Memo {
	if s.known == nil || s.known.Snapshot != n {
		s.known = scope.NewMemo(n)
	}
	return s.known
}
