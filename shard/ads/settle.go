package ads

import (
	"maps"
	"slices"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// This file keeps what is held back in step with what the client should have.

// settle works out what of resources is held back now. What has changed since the client refused it is sent again; what
// the client no longer subscribes to is forgotten.
func (q inquiry) settle(resources *Resources) {
	st := &q.types[q.typ]
	r := st.refusal
	if r == nil || r.count == 0 && r.quarantine == nil {
		return
	}
	var healed []Offence
	look := func(name string) { healed = append(healed, q.settleOne(name, resources)...) }
	switch {
	case r.seen == nil || r.sub != st.sub:
		for name := range r.units {
			look(name)
		}
	case r.seen != resources:
		resources.section().Diff(r.seen.section(), func(c chunked.Change[*encodecache.Entry]) { look(c.Key) })
	}
	for name := range r.dirty { // the client may refuse what is gone by now
		look(name)
	}
	r.seen, r.sub = resources, st.sub
	st.force = q.differ.union(st.force, q.differ.table.Of(r.left))
	r.left = nil
	if len(healed) > 0 {
		q.emit(Effect{Kind: Healed, Type: q.typ, TypeURL: q.row(q.typ).URL, Offences: healed})
	}
	if r.searching() && !slices.ContainsFunc(r.trial, func(s *suspect) bool { return s.state == tried }) {
		q.search() // nothing is being tried any more
	}
	r.flush(q.differ)
}

// settleOne acquits those suspects of a resource whose content is gone. It returns what no client holds back any more.
func (q inquiry) settleOne(name string, resources *Resources) (healed []Offence) {
	st := &q.types[q.typ]
	units := st.refusal.units[name]
	if len(units) == 0 {
		return nil
	}
	wanted, stands := st.sub.Has(name), st.refusal.standing(q.kind(q.typ), name, resources.get(name))
	for _, s := range units {
		if gone := !stands(s); s.state != acquitted && (gone || !wanted) {
			healed = append(healed, q.acquit(s, gone)...)
			if s.leave {
				st.refusal.left = append(st.refusal.left, name)
			}
		}
	}
	return healed
}

// standing returns a function that reports whether e, a version of a resource, still has what a suspect is suspected
// of; e is nil where the resource is gone.
func (r *refusal) standing(k kind, name string, e *encodecache.Entry) func(*suspect) bool {
	if e == nil {
		return func(*suspect) bool { return false }
	}
	sums := map[string]encodecache.Sum{}
	for _, p := range fragmentsOf(k, e) {
		sums[p.name] = p.fragment.Sum()
	}
	rest := e
	if h, ok := r.set.Get(name); ok {
		rest = h.without(k, e)
	}
	return func(s *suspect) bool {
		if !s.whole {
			sum, ok := sums[s.part]
			return ok && sum == s.refused
		}
		return e.Sum() == s.refused || rest != nil && rest.Sum() == s.refused
	}
}

// acquit ends the suspicion of s. gone tells that its content no longer exists. It returns s as an Offence if no client
// holds it back any more.
func (q inquiry) acquit(s *suspect, gone bool) (healed []Offence) {
	r := q.types[q.typ].refusal
	s.state = acquitted
	r.dirty[s.name] = struct{}{}
	if s.mine {
		q.own--
	}
	if s.noted && q.differ.verdicts.release(s.culprit(q.typ), gone) {
		healed = append(healed, s.offence(q.typ))
	}
	s.noted, s.mine = false, false
	return healed
}

// flush brings the Quarantine up to date with the states of the suspects.
func (r *refusal) flush(b *Differ) {
	if len(r.dirty) == 0 {
		return
	}
	edits := make([]chunked.Edit[*withheld], 0, len(r.dirty))
	for name := range r.dirty {
		before := len(r.units[name])
		units := slices.DeleteFunc(r.units[name], func(s *suspect) bool { return s.state == acquitted })
		r.count -= before - len(units)
		if len(units) == 0 {
			delete(r.units, name)
		} else {
			r.units[name] = units
		}
		h := withheldOf(units)
		edits = append(edits, chunked.Edit[*withheld]{Key: name, Value: h, Delete: h == nil})
	}
	clear(r.dirty)
	b.verdicts.charge(r.count - r.paid)
	r.paid = r.count
	r.set = r.set.Apply(edits)
	if r.quarantine = b.quarantine(r.set); r.quarantine != nil {
		r.set = r.quarantine.set
	}
}

// withheldOf returns what is held back of one resource; nil for nothing.
func withheldOf(units []*suspect) *withheld {
	h := &withheld{}
	for _, s := range units {
		switch {
		case s.state == tried:
		case s.whole:
			h.whole, h.refused, h.good, h.leave = true, s.refused, s.good, s.leave
		default:
			if h.parts == nil {
				h.parts, h.like = map[string]heldPart{}, s.good
			}
			h.parts[s.part] = heldPart{s.refused, s.goodPart}
		}
	}
	if !h.whole && h.parts == nil {
		return nil
	}
	return h.digested()
}

// quarantined returns what is held back now.
func (r *refusal) quarantined() *Quarantine {
	if r == nil {
		return nil
	}
	return r.quarantine
}

// refusedNames returns the names of the resources of which something is held back until it changes.
func (r *refusal) refusedNames() []string {
	if r == nil {
		return nil
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(r.units)) {
		if slices.ContainsFunc(r.units[name], func(s *suspect) bool { return s.state == condemned }) {
			out = append(out, name)
		}
	}
	return out
}
