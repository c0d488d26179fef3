package ads

import (
	"slices"
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
func (q inquiry) search() {
	if bad := q.next(); len(bad) > 0 {
		q.report(nil, bad, q.types[q.typ].refusal.message)
	}
}

// next goes on to the next trial. It returns what it finds to be bad on the way.
func (q inquiry) next() (bad []*suspect) {
	st := &q.types[q.typ]
	r := st.refusal
	bad = q.choose()
	r.own = r.own || len(bad) > 0
	r.asOf = q.sends
	names := make([]string, 0, len(r.trial))
	for _, s := range r.trial {
		s.state, s.in = tried, nil
		r.dirty[s.name] = struct{}{}
		if n := len(names); n == 0 || names[n-1] != s.name {
			names = append(names, s.name)
		}
	}
	st.force = q.differ.union(st.force, q.differ.table.Of(names))
	return bad
}

// choose takes the next group for trial, or half of it if the group is known to be bad.
func (q inquiry) choose() (bad []*suspect) {
	r := q.types[q.typ].refusal
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
			if parts, held := r.divide(q.kind(q.typ), s); (held || len(parts) > 0) && !q.indivisible(s) {
				q.acquit(s, true) // its parts are suspects instead
				if s.leave {
					r.left = append(r.left, s.name)
				}
				r.push(&group{items: parts, bad: true})
				continue
			}
			q.condemn(s)
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
func (q inquiry) indivisible(s *suspect) bool {
	return s.leave && q.row(q.typ).Parts.Needed && len(fragmentsOf(q.kind(q.typ), s.entry)) == 2
}

// refresh takes out suspects that are gone. The group then is no longer known to be bad, for none of the others may be
// to blame.
func (g *group) refresh() {
	n := len(g.items)
	g.items = slices.DeleteFunc(slices.Clone(g.items), func(s *suspect) bool { return s.in != g || s.state != waits })
	g.bad = g.bad && len(g.items) == n
}

// condemn holds a suspect back until its content changes, and lets other Sessions know.
func (q inquiry) condemn(s *suspect) {
	r := q.types[q.typ].refusal
	if s.in == nil {
		r.enter(&group{items: []*suspect{s}})
	}
	s.state, s.in = condemned, nil
	r.dirty[s.name] = struct{}{}
	s.mine, s.noted = q.differ.verdicts.reach(s.culprit(q.typ), s.entry, s.fragment, q.own < maxOwnVerdicts)
	if s.mine {
		q.own++
	}
	if s.noted {
		s.trace()
	}
}

// giveUp holds back all suspects that are not decided about. It adds no verdict, so that no other Session learns of it.
func (q inquiry) giveUp(suspects []*suspect) []*suspect {
	r := q.types[q.typ].refusal
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
func (q inquiry) retry(f flight) {
	r := q.types[q.typ].refusal
	if r == nil {
		return
	}
	r.streak = 0
	if r.searching() {
		if f.seq <= r.asOf {
			return
		}
		q.conclude(f)
		q.search()
	}
	if !r.searching() {
		q.doubtHearsay()
	}
}

// conclude decides what the ACK of f says about the trial.
func (q inquiry) conclude(f flight) {
	r := q.types[q.typ].refusal
	whole := f.has(q.kind(q.typ), r.trial)
	for _, s := range r.trial {
		if s.state == tried {
			q.acquit(s, false)
		}
	}
	if n := len(r.groups); r.split && whole && n > 0 && !slices.ContainsFunc(r.groups[n-1].items,
		func(s *suspect) bool { return s.state != waits }) {
		r.groups[n-1].bad = true // this half is good, so that the other one is bad
	}
}

// idle goes on with a search for which no response is on its way, because what is to be tried cannot be sent now. It
// reports whether it did.
func (q inquiry) idle() bool {
	st := &q.types[q.typ]
	if r := st.refusal; r == nil || !r.searching() || len(st.flights) > 0 || st.blocked {
		return false
	}
	st.refusal.split = false
	q.conclude(flight{})
	q.search()
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
func (q inquiry) doubtHearsay() {
	r := q.types[q.typ].refusal
	again := slices.DeleteFunc(r.hearsay, func(s *suspect) bool { return s.state != condemned })
	sure := len(again) < 2 && !r.own
	r.hearsay, r.own = nil, false
	if len(again) == 0 || sure {
		return
	}
	for _, s := range again {
		q.unsay(s)
	}
	r.push(&group{items: again})
	q.search()
}

// unsay takes back what this Session said about s, which is to be tried.
func (q inquiry) unsay(s *suspect) {
	if s.mine {
		q.own--
	}
	if s.noted && q.differ.verdicts.release(s.culprit(q.typ), false) {
		q.emit(Effect{Kind: Healed, Type: q.typ, TypeURL: q.row(q.typ).URL, Offences: []Offence{s.offence(q.typ)}})
	}
	s.noted, s.mine = false, false
}
