package plan

import "github.com/pilotd/pilotd/classes"

// followClasses works like advanceClasses for one base of many, whose caller catches panics: a base for which it
// panics is made from nothing, and so are its classes.
func (p *Planner) followClasses(bs *baseState, c *change, old *base) {
	same := old.equal(bs.base)
	for _, cs := range bs.classes {
		switch {
		case cs.broken || c.owns(cs):
			p.advanceClass(cs, c, old, true)
		case !same:
			p.tables.faults.Enter(cs)
			cs.give(bs.base.set(cs.overlay, old, cs.set), c.sets)
		}
	}
}

// owns reports whether something of a class's own may be another one now.
func (c *change) owns(cs *classState) bool {
	return len(c.affected.Hosts) > 0 && cs.own.Reads(c.affected.Hosts) // most changes read nothing of the class
}

// advanceClasses brings the classes of a base to it. anew: nothing of them may stay as it was.
func (p *Planner) advanceClasses(bs *baseState, c *change, old *base, anew bool) {
	same := old.equal(bs.base)
	for _, cs := range bs.classes {
		if stale := anew || cs.broken || c.owns(cs); stale || !same {
			p.advanceClass(cs, c, old, stale)
		}
	}
}

// advanceClass brings a class to its base. stale: what it has of its own may be another one.
func (p *Planner) advanceClass(cs *classState, c *change, old *base, stale bool) {
	cs.broken = !p.tables.faults.Contain(cs, cs.class.Name, c.objects, func() {
		if stale {
			p.renew(cs, c.sets)
		} else {
			cs.give(cs.base.base.set(cs.overlay, old, cs.set), c.sets)
		}
	})
}

// renew computes the own part of a class anew.
func (p *Planner) renew(cs *classState, sets map[*classes.Class]*classes.ResourceSet) {
	cs.overlay = p.tables.overlayOf(cs.base.base, cs.own, cs.overlay)
	cs.give(cs.base.base.set(cs.overlay, nil, nil), sets)
}

// give makes w the ResourceSet of the class, and notes it if it differs.
func (cs *classState) give(w *classes.ResourceSet, sets map[*classes.Class]*classes.ResourceSet) {
	if !sameSets(w, cs.set) {
		sets[&cs.class] = w
	}
	cs.set = w
}
