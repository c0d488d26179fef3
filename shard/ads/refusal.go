package ads

import (
	"maps"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// maxRefusals bounds how often in a row a type is corrected without an ACK. After that only a change is sent.
const maxRefusals = 64

// refusal is what a client refused of one type, and the search for it. When a refusal names its resources, these are held back at once.
// When it names none, the resources of the response are tried by halves, until an ACK or a refusal has decided about each: the halves
// that are not being tried are held back meanwhile.
type refusal struct {
	// Owned by the worker goroutine.
	holds  *Holds
	bad    map[string]held // held back until they change
	groups []group         // to be tried, the next at the end
	trial  []suspect       // being tried
	split  bool            // trial is one half of a bad group, of which the other is the last in groups
	asOf   uint64          // how many responses had been sent when the trial was chosen
	streak int             // refusals since the last ACK
}

// group are resources that are not decided about; bad is that one of them at least is.
type group struct {
	items []suspect
	bad   bool
}

// suspect is one resource of a refused response, and what to have instead.
type suspect struct {
	name string
	held held
}

// refused is a NACK of f. The response is corrected: what was bad goes back to the last good version, or away; all else of it is sent again,
// so that the ACK of the correction makes the client's versions true.
func (t *turn) refused(typ Type, f flight, message string) {
	st := &t.types[typ]
	st.log.refused(f.batch, t.now, message)
	if !st.doubt {
		st.doubt = true
		t.emit(Effect{Kind: Doubtful, Type: typ})
	}
	suspects := t.suspects(typ, f)
	named := t.named(typ, message, f.batch, suspects)
	if st.refusal == nil {
		st.refusal = &refusal{}
	}
	r := st.refusal
	r.streak++
	report := Effect{Kind: Refused, Type: typ, TypeURL: f.batch.TypeURL, Batch: f.batch, Message: message}
	switch {
	case len(named) > 0:
		r.condemn(named)
	case !r.searching():
		r.groups = []group{{items: suspects, bad: true}}
		named = t.next(typ)
	case f.seq <= r.asOf: // sent before the trial began
		r.groups = append([]group{{items: suspects, bad: true}}, r.groups...)
	default: // the trial, or what changed since and came with it
		r.groups = append(r.groups, group{items: suspects, bad: true})
		named = t.next(typ)
	}
	for _, s := range named {
		report.Names = append(report.Names, s.name)
	}
	t.emit(report)
	if r.streak <= maxRefusals {
		t.correct(typ, f.batch, slices.DeleteFunc(slices.Clone(suspects), func(s suspect) bool { return !s.held.leave }))
	}
}

// correct has all of a refused response sent again, as it should be now. What it changed, the client does not have; what it had before from
// another stream, left, stays as it is.
func (t *turn) correct(typ Type, batch *Batch, left []suspect) {
	st := &t.types[typ]
	again := make([]string, 0, len(batch.about()))
	undo := make([]chunked.Edit[*encodecache.Entry], 0, len(batch.about()))
	for _, it := range batch.about() {
		again = append(again, it.name)
		if slices.ContainsFunc(left, func(s suspect) bool { return s.name == it.name }) {
			continue
		}
		old := st.accepted.get(it.name)
		undo = append(undo, chunked.Edit[*encodecache.Entry]{Key: it.name, Value: old, Delete: old == nil})
	}
	st.have = batch.undone(st.have, st.accepted, undo)
	st.sum = t.sumOf(typ)
	st.force = t.book.union(st.force, t.book.table.Of(again))
}

// suspects are the resources of a response that may be the reason why it was refused.
func (t *turn) suspects(typ Type, f flight) []suspect {
	st := &t.types[typ]
	var out []suspect
	for _, it := range f.batch.about() {
		if it.new == nil || f.to.get(it.name) == nil { // it goes, or it is the fallback for what does not exist
			continue
		}
		h := held{refused: it.new.Sum(), good: st.accepted.get(it.name)}
		if old, ok := st.refusal.of(it.name); ok && old.refused == h.refused {
			continue // it was not in the response: it is held
		}
		if st.initial.has(it.name) {
			h.good, h.leave = nil, true // it has a good version, but not one that is known here
		} else if h.good != nil && h.good.Sum() == h.refused {
			continue // it is what the client accepted before
		}
		out = append(out, suspect{it.name, h})
	}
	return out
}

// retry goes on with a search after the ACK of f.
func (t *turn) retry(typ Type, f flight) {
	r := t.types[typ].refusal
	if r == nil {
		return
	}
	r.streak = 0
	if !r.searching() || f.seq <= r.asOf {
		return
	}
	if r.split && f.has(r.trial) && len(r.groups) > 0 {
		r.groups[len(r.groups)-1].bad = true // this half is good, so the other is not
	}
	t.search(typ)
}

// search goes on to the next trial, and reports what is found to be bad on the way.
func (t *turn) search(typ Type) {
	bad := t.next(typ)
	if len(bad) == 0 {
		return
	}
	report := Effect{Kind: Refused, Type: typ, TypeURL: typ.URL()}
	for _, s := range bad {
		report.Names = append(report.Names, s.name)
	}
	t.emit(report)
}

// has reports whether the response left its client with all of trial as it was suspected: they may have changed since.
func (f *flight) has(trial []suspect) bool {
	return !slices.ContainsFunc(trial, func(s suspect) bool {
		e := f.to.get(s.name)
		return e == nil || e.Sum() != s.held.refused
	})
}

func (r *refusal) searching() bool { return len(r.trial) > 0 || len(r.groups) > 0 }

// next goes on to the next trial. It returns what is found to be bad on the way.
func (t *turn) next(typ Type) (bad []suspect) {
	st := &t.types[typ]
	bad = st.refusal.choose()
	st.refusal.asOf = t.sends
	names := make([]string, 0, len(st.refusal.trial))
	for _, s := range st.refusal.trial {
		names = append(names, s.name)
	}
	st.force = t.book.union(st.force, t.book.table.Of(names))
	return bad
}

// choose takes the next group for trial, half of it if it is known to be bad.
func (r *refusal) choose() (bad []suspect) {
	r.trial, r.split = nil, false
	for len(r.groups) > 0 {
		g := r.groups[len(r.groups)-1]
		r.groups = r.groups[:len(r.groups)-1]
		switch {
		case len(g.items) == 0:
			continue
		case !g.bad:
			r.trial = g.items
			return bad
		case len(g.items) == 1:
			bad = append(bad, g.items...)
			r.condemn(g.items)
			continue
		}
		half := len(g.items) / 2
		r.groups = append(r.groups, group{items: g.items[half:]})
		r.trial, r.split = g.items[:half], true
		return bad
	}
	return bad
}

// condemn holds resources back until they change.
func (r *refusal) condemn(bad []suspect) {
	if r.bad == nil {
		r.bad = map[string]held{}
	}
	for _, s := range bad {
		r.bad[s.name] = s.held
	}
}

// release works out what is held back of content: what is bad, and what is to be tried later. What has changed since it was refused is
// tried like anything else; what is not subscribed to any more is forgotten.
func (t *turn) release(typ Type, content *Content) {
	st := &t.types[typ]
	r := st.refusal
	if r == nil || r.holds == nil && !r.searching() && len(r.bad) == 0 {
		return
	}
	settled := func(s suspect) bool {
		e := content.get(s.name)
		return e == nil || e.Sum() != s.held.refused || !st.sub.Has(s.name)
	}
	maps.DeleteFunc(r.bad, func(name string, h held) bool { return settled(suspect{name, h}) })
	for i := range r.groups {
		g := &r.groups[i]
		if slices.ContainsFunc(g.items, settled) { // the bad one may be among them
			g.items, g.bad = slices.DeleteFunc(slices.Clone(g.items), settled), false
			r.split = r.split && i < len(r.groups)-1
		}
	}
	if r.searching() && !slices.ContainsFunc(r.trial, func(s suspect) bool { return !settled(s) }) {
		t.search(typ) // nothing is being tried any more
	}
	all := maps.Clone(r.bad)
	for _, g := range r.groups {
		for _, s := range g.items {
			if all == nil {
				all = map[string]held{}
			}
			if _, bad := all[s.name]; !bad {
				all[s.name] = s.held
			}
		}
	}
	r.holds = t.book.hold(all)
}

// maxMessage is how much of an error is searched for names.
const maxMessage = 256 << 10

// named are the resources of a response that the error names.
func (t *turn) named(typ Type, message string, batch *Batch, suspects []suspect) []suspect {
	has := words(message)
	var out []suspect
	for _, s := range suspects {
		if has(s.name) {
			out = append(out, s)
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, e := range batch.Entries { // something that the client had accepted before
		if !has(e.Name()) {
			continue
		}
		h := held{refused: e.Sum()}
		if before, ok := t.types[typ].refusal.of(e.Name()); ok {
			h.refused = before.refused // what it was given instead is no better
		}
		out = append(out, suspect{e.Name(), h})
	}
	return out
}

// words tells which names are in a message.
func words(message string) func(name string) bool {
	if len(message) > maxMessage {
		message = message[:maxMessage]
	}
	all := map[string]struct{}{}
	for _, w := range strings.FieldsFunc(message, endsName) {
		all[w] = struct{}{}
		all[strings.TrimRight(w, ".:;")] = struct{}{}
	}
	return func(name string) bool {
		if strings.ContainsFunc(name, endsName) {
			return strings.Contains(message, name)
		}
		_, ok := all[name]
		return ok
	}
}

// endsName reports whether r ends a resource name in an error's text.
func endsName(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`,()[]{}<>=", r) }
