package plan

import (
	"slices"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// familyOf returns the family of a scope, with its outsider; nil if it is of none.
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
		f.found(p.tables, p.memoOf(p.current.Snapshot))
	})
}

// newBase makes a base anew: as a difference from its family's outsider, if it has one.
func (p *Planner) newBase(f *family, facts scope.Facts, labels value.Labels) *base {
	k := p.memoOf(p.current.Snapshot)
	if f != nil && f.outsider != nil {
		return f.member(p.tables, k, facts.Namespace)
	}
	return p.tables.baseOf(k, facts, labels)
}

// join makes a base a member of its family.
func (p *Planner) join(bs *baseState) {
	if f := bs.family; f != nil {
		bs.beside = f.outsider
		f.members = append(f.members, bs)
		p.families[familyFacts(bs.facts)] = f
	}
}

// quit is that a base is gone. A family without members goes too.
func (p *Planner) quit(bs *baseState) {
	f := bs.family
	if f == nil {
		return
	}
	at := slices.Index(f.members, bs)
	last := len(f.members) - 1
	f.members[at], f.members[last] = f.members[last], nil
	if f.members = f.members[:last]; last == 0 {
		delete(p.families, familyFacts(bs.facts))
		p.tables.faults.Forget(f)
	}
}

// advanceFamilies brings the outsiders and the members of all families to what changed, and tells how many members
// there are. An outsider for which that panics is made from nothing when the next change comes; its members are
// advanced by themselves until then.
func (p *Planner) advanceFamilies(c *change) (members int) {
	for _, f := range p.families {
		if c.affected.All || f.outsider == nil {
			p.foundFamily(f, c.objects)
		} else {
			p.tables.faults.Contain(f, "proxies of any namespace", c.objects, func() {
				f.advance(p.tables, c.view.Snapshot, c.affected)
			})
		}
		members += len(f.members)
		p.advanceMembers(f, c)
	}
	return members
}

// advanceMembers brings the members of a family to what changed.
func (p *Planner) advanceMembers(f *family, c *change) {
	if f.step != nil && !f.step.empty() && len(c.sets) == 0 {
		c.sets = make(map[*classes.Class]*classes.ResourceSet, len(f.members)) // nearly all of them get another one
	}
	for at := 0; at < len(f.members); at++ {
		if at = p.followers(f, c, at); at < len(f.members) {
			p.advanceBase(f.members[at], c)
		}
	}
}

// memoOf returns what is known of the Snapshot that is planned.
func (s *state) memoOf(n *snapshot.Snapshot) *scope.Memo {
	if s.memo == nil || s.memo.Snapshot != n {
		s.memo = scope.NewMemo(n)
	}
	return s.memo
}

// followers has members, from at on, take what became of the outsider, up to the first that does not follow it, or for
// which that panics.
func (p *Planner) followers(f *family, c *change, at int) (next int) {
	defer func() {
		if r := recover(); r != nil {
			f.members[next].broken = true // it is made from nothing, and what panics there is told
		}
	}()
	host := anyOf(c.affected.Routes)
	for next = at; next < len(f.members) && f.follows(f.members[next]); next++ {
		if (next-at)%ahead == 0 {
			prefetch(f.members[next:min(next+ahead, len(f.members))], host)
		}
		bs := f.members[next]
		p.tables.faults.Enter(bs)
		old := bs.base
		bs.base, bs.beside = f.step.follow(old), f.outsider
		p.followClasses(bs, c, old)
	}
	return next
}

// supply makes the resources of types that somebody asks for now, and lets go of those that nobody asks for any more.
// It costs what there is of the type, once for all bases that have it in common. It returns the new ResourceSets.
func (p *Planner) supply() map[*classes.Class]*classes.ResourceSet {
	list, was := &p.tables.sources, p.tables.sources.idle
	for t, askers := range p.askers {
		if askers > 0 {
			list.idle = list.idle.Without(t)
		} else {
			list.idle = list.idle.With(t)
			delete(p.askers, t)
		}
	}
	if list.idle == was {
		return nil
	}
	c := &change{view: p.current, sets: map[*classes.Class]*classes.ResourceSet{}, affected: &scope.Affected{}}
	k := p.memoOf(p.current.Snapshot)
	beside := map[*base]*base{} // what an outsider has, by what it had
	for _, f := range p.families {
		if old := f.outsider; old != nil {
			p.tables.faults.Contain(f, "proxies of any namespace", nil, func() {
				f.outsider, f.step = nil, nil
				f.outsider = p.tables.supplied(old, k, nil)
			})
			beside[old] = f.outsider
		}
	}
	for _, bs := range p.bases {
		p.supplyBase(bs, beside[bs.beside], c)
	}
	return c.sets
}

// supplyBase gives a base the parts of the types that are made now. outsider is what stands beside it; nil if nothing
// does.
func (p *Planner) supplyBase(bs *baseState, outsider *base, c *change) {
	old := bs.base
	var from *family
	if outsider != nil && !bs.broken {
		from = bs.family
	}
	if !p.tables.faults.Contain(bs, "proxies of namespace "+bs.facts.Namespace, nil, func() {
		bs.base = p.tables.supplied(old, p.memoOf(c.view.Snapshot), from)
	}) {
		bs.broken = true
		return
	}
	if outsider != nil {
		bs.beside = outsider
	}
	p.advanceClasses(bs, c, old, false)
}
