package ads

import (
	"slices"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/xdstype"
)

// maxRefusals is how often in a row a type is corrected without an ACK. Then the search gives up: everything undecided
// is held back.
const maxRefusals = 64

// refusal is what a client refused of one type, and the search for it.
//
//	NACK ─┬─ the text names a resource ───────► its parts are the suspects
//	      ├─ others have refused a suspect ───► it is held back at once, and tried later if it does not explain the
//	      │                                     refusal alone
//	      └─ else ────────────────────────────► all changes of the response are suspects
//	suspects ─ by halves, until an ACK or a NACK has decided about each ─► one resource
//	one resource ─ by halves again ─► one part: held back
//
// While one half is tried, the other is held back: at what the client accepted last, or absent. What is found is held
// back until its content changes or is gone, whatever else changes in the resource.
type refusal struct {
	// Owned by the worker goroutine.
	units      map[string][]*suspect // suspects that are not acquitted, by resource
	count      int                   // of units,
	paid       int                   // and how many of them the Verdicts know of
	dirty      map[string]struct{}   // resources whose units have changed since set was brought up to date
	set        quarantined
	quarantine *Quarantine
	view       view
	seen       *Resources   // that settle was called for last,
	sub        Subscription // and with which subscription
	groups     []*group     // to be tried, the next at the end
	trial      []*suspect   // being tried
	split      bool         // trial is one half of a bad group; the other half is the last of groups
	asOf       uint64       // how many responses there had been when the trial was chosen
	streak     int          // refusals since the last ACK

	// resources of which the client keeps a version that is not known here, until a response mentions them
	left    []string
	hearsay []*suspect // held back because of what other Sessions found, and not tried here
	own     bool       // since then this Session has found something else
	message string     // the client's last
}

// group is a number of suspects that are not decided about. bad tells that at least one of them is to blame.
type group struct {
	items []*suspect
	bad   bool
}

// verdictState is what is known of a suspect.
type verdictState uint8

const (
	waits     verdictState = iota // held back, to be tried
	tried                         // in the response that was sent
	condemned                     // held back until its content changes
	acquitted                     // not a suspect any more
)

// suspect is one resource of a refused response, or one part of it.
type suspect struct {
	name    string
	whole   bool
	part    string
	refused encodecache.Sum
	// entry and good are the resource as it was sent and as the client accepted it; fragment and goodPart the same for
	// a part.
	entry, good        *encodecache.Entry
	fragment, goodPart *encodecache.Fragment
	// leave tells that the client has a version that is not known here.
	leave bool

	state  verdictState
	in     *group // where it waits
	listed bool   // it is among the units
	noted  bool   // it is in the Verdicts
	mine   bool   // because of this Session alone

	origins []any // of one that is noted
}

// inquiry is a turn that is about what the client refuses of one type.
type inquiry struct {
	*turn
	typ xdstype.Type
}

func (t *turn) about(typ xdstype.Type) inquiry { return inquiry{t, typ} }

// refused takes the NACK of f. It corrects the response: what is bad goes back to the last good version, or away; all
// else is sent again, so that after the ACK of the correction the client has what its versions say.
func (q inquiry) refused(f flight, message string) {
	st := &q.types[q.typ]
	if q.row(q.typ).Source == xdstype.FromIdentity {
		message = discreet(message)
	}
	st.log.refused(f.batch, q.now, message)
	if !st.doubt {
		st.doubt = true
		q.emit(Effect{Kind: Doubtful, Type: q.typ})
	}
	if st.refusal == nil {
		st.refusal = &refusal{units: map[string][]*suspect{}, dirty: map[string]struct{}{}}
	}
	r := st.refusal
	r.streak++
	r.message = message[:min(len(message), maxRecorded)]
	suspects, explained := q.suspects(f)
	if r.count+len(suspects) > maxOwnSuspects || !q.differ.verdicts.room(len(suspects)) {
		q.emit(Effect{Kind: Refused, Type: q.typ, TypeURL: f.batch.TypeURL, Batch: f.batch, Message: r.message})
		return // there is no room for a search: the client is sent something only when it changes
	}
	q.report(f.batch, q.attribute(f, suspects, explained), r.message)
	if r.streak <= maxRefusals {
		q.correct(f.batch)
	}
}

// attribute decides what a refusal says about suspects. explained tells that the response had something that was found
// to be bad since. It returns what it finds to be bad.
func (q inquiry) attribute(f flight, suspects []*suspect, explained bool) []*suspect {
	r := q.types[q.typ].refusal
	if r.streak >= maxRefusals {
		return q.giveUp(suspects)
	}
	groups, byText := q.named(r.message, f.batch, suspects)
	if !byText {
		groups = []*group{{items: suspects, bad: true}}
	}
	var known []*suspect
	if !r.searching() { // else what other Sessions found is being tried, or did not help
		known = q.known(groups, byText)
	}
	switch {
	case !byText && explained:
		return nil
	case byText || len(known) > 0:
		r.suspend()
		r.own = r.own && len(r.hearsay) > 0
		for _, s := range known {
			q.condemn(s)
		}
		r.hearsay = append(r.hearsay, known...)
		if byText {
			r.push(groups...)
		}
	case r.searching() && f.seq <= r.asOf: // sent before the trial began
		r.groups = append(groups, r.groups...)
		r.enter(groups[0])
		return nil
	default: // the first, or the trial, or what changed since and came with it
		r.suspend()
		r.push(groups...)
	}
	return append(known, q.next()...)
}

// report tells of a refusal, and of what is found.
func (q inquiry) report(batch *Batch, found []*suspect, message string) {
	e := Effect{Kind: Refused, Type: q.typ, TypeURL: q.row(q.typ).URL, Batch: batch, Message: message}
	for _, s := range found {
		if n := len(e.Names); n == 0 || e.Names[n-1] != s.name {
			e.Names = append(e.Names, s.name)
		}
		e.Parts = append(e.Parts, s.part)
		if s.noted {
			e.Offences = append(e.Offences, s.offence(q.typ))
		}
		s.entry = nil
	}
	q.emit(e)
}

func (s *suspect) culprit(typ xdstype.Type) Culprit {
	return Culprit{Type: typ, Name: s.name, Part: s.part, Sum: s.refused}
}

// offence returns a suspect as it is reported.
func (s *suspect) offence(typ xdstype.Type) Offence {
	return Offence{Culprit: s.culprit(typ), Origins: s.origins}
}

// trace finds out what a suspect was made from.
func (s *suspect) trace() {
	switch {
	case s.fragment != nil:
		s.origins = appendKey(nil, s.fragment.Origin())
	case s.entry != nil:
		if s.origins = appendKey(nil, s.entry.Origin()); len(s.origins) > 0 {
			return
		}
		for f := range s.entry.Parts() {
			s.origins = appendKey(s.origins, f.Origin())
		}
	}
}

func appendKey(origins []any, key any) []any {
	if key == nil {
		return origins
	}
	return append(origins, key)
}

// correct has all of a refused response sent again, as it should be now. What it changed, the client does not have.
func (q inquiry) correct(batch *Batch) {
	st := &q.types[q.typ]
	undo := make([]chunked.Edit[*encodecache.Entry], 0, len(batch.about()))
	for _, it := range batch.about() {
		old := st.accepted.get(it.name)
		undo = append(undo, chunked.Edit[*encodecache.Entry]{Key: it.name, Value: old, Delete: old == nil})
	}
	st.have = batch.undone(st.have, st.accepted, undo)
	st.sum = q.sumOf(q.typ)
	st.force = q.differ.union(st.force, batch.every(q.differ.table))
}

// suspects returns the resources of a response that may be the reason why it was refused; of one that is searched
// already, the parts. explained tells that something else in it, which was sent before it was found, is the reason.
func (q inquiry) suspects(f flight) (out []*suspect, explained bool) {
	st := &q.types[q.typ]
	for _, it := range f.batch.about() {
		if it.new == nil || f.to.get(it.name) == nil { // it goes, or it is the fallback for what does not exist
			continue
		}
		s := &suspect{name: it.name, whole: true, refused: it.new.Sum(), entry: it.new, good: st.accepted.get(it.name)}
		switch {
		case st.initial.has(it.name):
			s.good, s.leave = nil, true // it has a good version, but not one that is known here
		case s.good != nil && s.good.Sum() == s.refused:
			continue // it is what the client accepted before
		}
		if units := st.refusal.units[it.name]; len(units) > 0 {
			if slices.ContainsFunc(units, (*suspect).isPart) {
				if parts, held := st.refusal.divide(q.kind(q.typ), s); held || len(parts) > 0 {
					out, explained = append(out, parts...), explained || held
					continue
				}
			}
			if s = known(units, s); s.state == condemned {
				explained = true
				continue
			}
		}
		out = append(out, s)
	}
	return out, explained || q.row(q.typ).Complete && !q.opts.Delta && st.refusal.condemnedIn(q.kind(q.typ), f.to)
}

// condemnedIn reports whether something is there that is to be held back: it was sent before it was found. A response
// that is complete repeats it.
func (r *refusal) condemnedIn(k kind, in had) bool {
	for name, units := range r.units {
		if !slices.ContainsFunc(units, func(s *suspect) bool { return s.state == condemned }) {
			continue
		}
		stands := r.standing(k, name, in.get(name))
		if slices.ContainsFunc(units, func(s *suspect) bool { return s.state == condemned && stands(s) }) {
			return true
		}
	}
	return false
}

func (s *suspect) isPart() bool { return !s.whole && s.state != acquitted }

// known returns the one of units that is the same as s, or s.
func known(units []*suspect, s *suspect) *suspect {
	for _, u := range units {
		if u.whole == s.whole && u.part == s.part && u.refused == s.refused && u.state != acquitted {
			return u
		}
	}
	return s
}

// divide returns the parts of a suspected resource that the client has not accepted; none if it is accepted or refused
// as a whole. held tells that some parts are held back already.
func (r *refusal) divide(k kind, s *suspect) (out []*suspect, held bool) {
	parts := fragmentsOf(k, s.entry)
	if !s.whole || len(parts) == 0 || len(parts) == 1 && !slices.ContainsFunc(r.units[s.name], (*suspect).isPart) {
		return nil, false
	}
	had := map[string]*encodecache.Fragment{}
	for _, p := range fragmentsOf(k, s.good) {
		had[p.name] = p.fragment
	}
	type id struct {
		part string
		sum  encodecache.Sum
	}
	units := map[id]*suspect{}
	for _, u := range r.units[s.name] {
		if !u.whole && u.state != acquitted {
			units[id{u.part, u.refused}] = u
		}
	}
	for i, p := range parts {
		good := had[p.name]
		switch {
		case good != nil && good.Sum() == p.fragment.Sum():
			continue
		case i == 0 && good == nil && k.row.Parts.Needed:
			continue // it cannot be tried alone
		}
		switch u := units[id{p.name, p.fragment.Sum()}]; {
		case u == nil:
			out = append(out, &suspect{
				name: s.name, part: p.name, refused: p.fragment.Sum(), good: s.good, entry: s.entry,
				fragment: p.fragment, goodPart: good,
			})
		case u.state == condemned:
			held = true
		default:
			out = append(out, u)
		}
	}
	return out, held
}

// named returns the suspects that the text of an error accuses, a group for each resource, those that have parts first.
// any tells whether it accuses anything, be it something that was found before.
func (q inquiry) named(message string, batch *Batch, suspects []*suspect) (groups []*group, any bool) {
	names := accused(q.row(q.typ), message, func(name string) bool { return batch.entry(name) != nil })
	if len(names) == 0 {
		return nil, false
	}
	byName := make(map[string][]*suspect, len(suspects))
	for _, s := range suspects {
		byName[s.name] = append(byName[s.name], s)
	}
	var leaves []*group
	for _, name := range names {
		items := byName[name]
		delete(byName, name)
		if len(items) == 0 && !q.types[q.typ].refusal.worsen(name) { // something that the client had accepted before
			e := batch.entry(name)
			items = []*suspect{{name: name, whole: true, refused: e.Sum(), entry: e}}
		}
		if len(items) == 1 && partsOf(q.kind(q.typ), items[0].entry) == nil {
			leaves = append(leaves, &group{items: items, bad: true})
		} else if len(items) > 0 {
			groups = append(groups, &group{items: items, bad: true})
		}
	}
	slices.Reverse(leaves) // the last one is tried first
	return append(groups, leaves...), true
}

// worsen takes away what a client has instead of something that is held back: it is no better. It reports false if
// nothing is.
func (r *refusal) worsen(name string) (ok bool) {
	for _, s := range r.units[name] {
		if s.state == condemned {
			s.good, s.goodPart, ok = nil, nil, true
			r.dirty[name] = struct{}{}
		}
	}
	return ok
}

// known returns those suspects that other clients have refused, and takes their groups away. What the text accuses and
// has no parts needs no other's word.
func (q inquiry) known(groups []*group, byText bool) (out []*suspect) {
	r := q.types[q.typ].refusal
	for _, g := range groups {
		n := len(out)
		var name string
		var culprits []Culprit
		for i, s := range g.items {
			if i == 0 || s.name != name {
				name, culprits = s.name, q.differ.verdicts.known(q.typ, s.name)
			}
			if len(culprits) == 0 || byText && len(g.items) == 1 && partsOf(q.kind(q.typ), s.entry) == nil {
				continue
			}
			parts, _ := r.divide(q.kind(q.typ), s)
			for _, p := range append(parts, s) {
				if slices.Contains(culprits, p.culprit(q.typ)) {
					out = append(out, p)
				}
			}
		}
		if len(out) > n {
			g.items = nil
		}
	}
	return out
}
