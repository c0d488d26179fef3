package ads

import (
	"slices"

	"github.com/pilotd/pilotd/xdstype"
)

// This file is the search for what a client refuses: which suspects are tried next.

func (r *refusal) searching() bool { return len(r.trial) > 0 || len(r.groups) > 0 }

// enter makes the suspects of a group wait for their trial: they are held back.
func (r *refusal) enter(g *group) {
	for _, s := range g.items {
		if !s.listed {
			s.listed = true
			r.units[s.name] = append(r.units[s.name], s)
			r.count++
		}
		s.in, s.state = g, waits
		r.dirty[s.name] = struct{}{}
	}
}

// push puts groups next in line, the last of them first.
func (r *refusal) push(groups ...*group) {
	for _, g := range groups {
		if len(g.items) > 0 {
			r.groups = append(r.groups, g)
			r.enter(g)
		}
	}
}

// suspend ends the trial without a decision.
func (r *refusal) suspend() {
	trial := slices.DeleteFunc(r.trial, func(s *suspect) bool { return s.state != tried })
	r.trial, r.split = nil, false
	r.push(&group{items: trial})
}

// search goes on to the next trial, and reports what it finds to be bad on the way.
func (t *turn) search(typ xdstype.Type) {
	if bad := t.next(typ); len(bad) > 0 {
		t.report(typ, nil, bad, t.types[typ].refusal.message)
	}
}

// next goes on to the next trial. It returns what it finds to be bad on the way.
func (t *turn) next(typ xdstype.Type) (bad []*suspect) {
	st := &t.types[typ]
	r := st.refusal
	bad = t.choose(typ)
	r.own = r.own || len(bad) > 0
	r.asOf = t.sends
	names := make([]string, 0, len(r.trial))
	for _, s := range r.trial {
		s.state, s.in = tried, nil
		r.dirty[s.name] = struct{}{}
		if n := len(names); n == 0 || names[n-1] != s.name {
			names = append(names, s.name)
		}
	}
	st.force = t.differ.union(st.force, t.differ.table.Of(names))
	return bad
}

// choose takes the next group for trial, or half of it if the group is known to be bad.
func (t *turn) choose(typ xdstype.Type) (bad []*suspect) {
	r := t.types[typ].refusal
	r.trial, r.split = nil, false
	for len(r.groups) > 0 {
		g := r.groups[len(r.groups)-1]
		r.groups = r.groups[:len(r.groups)-1]
		g.refresh()
		switch {
		case len(g.items) == 0:
			continue
		case !g.bad:
			r.trial = g.items
			return bad
		case len(g.items) == 1:
			s := g.items[0]
			if parts, held := r.divide(t.kind(typ), s); (held || len(parts) > 0) && !t.indivisible(typ, s) {
				t.acquit(typ, s, true) // its parts are suspects instead
				if s.leave {
					r.left = append(r.left, s.name)
				}
				r.push(&group{items: parts, bad: true})
				continue
			}
			t.condemn(typ, s)
			bad = append(bad, s)
			continue
		}
		half := len(g.items) / 2
		r.push(&group{items: g.items[half:]})
		r.trial, r.split = g.items[:half], true
		return bad
	}
	return bad
}

// indivisible reports whether nothing useful would be left of a resource without what is suspected while the client has
// an older version: then the client keeps that.
func (t *turn) indivisible(typ xdstype.Type, s *suspect) bool {
	return s.leave && t.row(typ).Parts.Needed && len(fragmentsOf(t.kind(typ), s.entry)) == 2
}

// refresh takes out suspects that are gone. The group then is no longer known to be bad, for none of the others may be
// to blame.
func (g *group) refresh() {
	n := len(g.items)
	g.items = slices.DeleteFunc(slices.Clone(g.items), func(s *suspect) bool { return s.in != g || s.state != waits })
	g.bad = g.bad && len(g.items) == n
}

// condemn holds a suspect back until its content changes, and lets other Sessions know.
func (t *turn) condemn(typ xdstype.Type, s *suspect) {
	r := t.types[typ].refusal
	if s.in == nil {
		r.enter(&group{items: []*suspect{s}})
	}
	s.state, s.in = condemned, nil
	r.dirty[s.name] = struct{}{}
	s.mine, s.noted = t.differ.verdicts.reach(s.culprit(typ), s.entry, s.fragment, t.own < maxOwnVerdicts)
	if s.mine {
		t.own++
	}
	if s.noted {
		s.trace()
	}
}

// giveUp holds back all suspects that are not decided about. It adds no verdict, so that no other Session learns of it.
func (t *turn) giveUp(typ xdstype.Type, suspects []*suspect) []*suspect {
	r := t.types[typ].refusal
	r.suspend()
	r.push(&group{items: suspects})
	var all []*suspect
	for _, g := range r.groups {
		g.refresh()
		for _, s := range g.items {
			s.state, s.in = condemned, nil
			r.dirty[s.name] = struct{}{}
		}
		all = append(all, g.items...)
	}
	r.groups = nil
	return all
}

// retry goes on with a search after the ACK of f.
func (t *turn) retry(typ xdstype.Type, f flight) {
	r := t.types[typ].refusal
	if r == nil {
		return
	}
	r.streak = 0
	if r.searching() {
		if f.seq <= r.asOf {
			return
		}
		t.conclude(typ, f)
		t.search(typ)
	}
	if !r.searching() {
		t.doubtHearsay(typ)
	}
}

// conclude decides what the ACK of f says about the trial.
func (t *turn) conclude(typ xdstype.Type, f flight) {
	r := t.types[typ].refusal
	whole := f.has(t.kind(typ), r.trial)
	for _, s := range r.trial {
		if s.state == tried {
			t.acquit(typ, s, false)
		}
	}
	if n := len(r.groups); r.split && whole && n > 0 && !slices.ContainsFunc(r.groups[n-1].items,
		func(s *suspect) bool { return s.state != waits }) {
		r.groups[n-1].bad = true // this half is good, so that the other one is bad
	}
}

// idle goes on with a search for which no response is on its way, because what is to be tried cannot be sent now. It
// reports whether it did.
func (t *turn) idle(typ xdstype.Type) bool {
	st := &t.types[typ]
	if r := st.refusal; r == nil || !r.searching() || len(st.flights) > 0 || st.blocked {
		return false
	}
	st.refusal.split = false
	t.conclude(typ, flight{})
	t.search(typ)
	return true
}

// has reports whether the response had all of trial with the content that is suspected, which may have changed since.
func (f *flight) has(k kind, trial []*suspect) bool {
	sums := map[string]map[string]part{}
	for _, s := range trial {
		e := f.to.get(s.name)
		if e == nil || s.state != tried {
			return false
		}
		if s.whole {
			if e.Sum() != s.refused {
				return false
			}
			continue
		}
		parts := sums[s.name]
		if parts == nil {
			parts = map[string]part{}
			for _, p := range fragmentsOf(k, e) {
				parts[p.name] = p
			}
			sums[s.name] = parts
		}
		if p, ok := parts[s.part]; !ok || p.fragment.Sum() != s.refused {
			return false
		}
	}
	return true
}

// doubtHearsay tries what is held back only because of what other Sessions found, once the search is over. One thing
// need not be tried: if it was all that was known to be bad in the response, and the client accepted the response
// without it, it explains the refusal.
func (t *turn) doubtHearsay(typ xdstype.Type) {
	r := t.types[typ].refusal
	again := slices.DeleteFunc(r.hearsay, func(s *suspect) bool { return s.state != condemned })
	sure := len(again) < 2 && !r.own
	r.hearsay, r.own = nil, false
	if len(again) == 0 || sure {
		return
	}
	for _, s := range again {
		t.unsay(typ, s)
	}
	r.push(&group{items: again})
	t.search(typ)
}

// unsay takes back what this Session said about s, which is to be tried.
func (t *turn) unsay(typ xdstype.Type, s *suspect) {
	if s.mine {
		t.own--
	}
	if s.noted && t.differ.verdicts.release(s.culprit(typ), false) {
		t.emit(Effect{Kind: Healed, Type: typ, TypeURL: t.row(typ).URL, Offences: []Offence{s.offence(typ)}})
	}
	s.noted, s.mine = false, false
}
