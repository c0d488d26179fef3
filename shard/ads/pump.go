package ads

import (
	"time"

	"github.com/pilotd/pilotd/xdstype"
)

// pump sends what may be sent now, in order: CDS additions and changes, EDS, LDS, RDS, then removals.
//
// A type follows the one that its row names, so that what is desired reaches a client from CDS downwards: EDS and LDS
// go to the Desired that CDS was last sent from, RDS to that of LDS. A type that waits for an ACK holds back those that
// follow it, and what came meanwhile merges.
func (t *turn) pump() {
	if t.desired == nil {
		return
	}
	for i := range t.types {
		typ := xdstype.Type(i)
		t.step(typ, t.upstream(typ))
	}
	t.removals()
}

// upstream returns the Desired that a type may be brought to now.
func (s *Session) upstream(typ xdstype.Type) Desired {
	for lead := s.row(typ).Follows; lead != xdstype.None; lead = s.row(lead).Follows {
		if at := s.types[lead].at; at != nil && !s.late(lead) {
			return at
		}
	}
	return s.desired
}

// late reports whether a type has held back the types that follow it for as long as it may. Types that clients ACK only
// when they are warm are never late: they get their credit back by time instead.
func (s *Session) late(typ xdstype.Type) bool {
	st := &s.types[typ]
	return !s.warms(typ) && st.waiting && st.blocked && !s.now.Before(st.newest().since.Add(CreditWait))
}

func (s *Session) kind(typ xdstype.Type) kind {
	row := s.row(typ)
	return kind{row: row, delta: s.opts.Delta, fallback: s.opts.Sidecar && row.Empty != nil, sidecar: s.opts.Sidecar}
}

// step sends what one type lacks of desired, as far as order allows now.
func (t *turn) step(typ xdstype.Type, desired Desired) {
	st := &t.types[typ]
	if !st.watched {
		st.at = desired
		return
	}
	goal := t.goal(typ, desired)
	if goal == nil {
		return
	}
	if t.row(typ).OnDemand && goal.section().Len() == 0 {
		st.at = desired // nothing is made yet, or the client refused what was made: it keeps what it has
		return
	}
	if st.first {
		if t.firstAnswer(typ, goal) {
			st.at = desired
		}
		return
	}
	for t.to(typ, goal, t.row(typ).Removal == xdstype.Last || goal.Final) {
		st.at = desired
		if !t.about(typ).idle() {
			return
		}
		goal = t.goal(typ, desired)
	}
}

// goal returns what the client should have of a type: what is desired, without what it refused; nil while that is not
// known.
func (t *turn) goal(typ xdstype.Type, desired Desired) *Resources {
	st := &t.types[typ]
	resources := desired.Resources(typ, st.sub)
	r := st.refusal
	if r == nil || resources == nil || resources.Final {
		return resources
	}
	t.about(typ).settle(resources)
	r.view = t.differ.mask(t.kind(typ), resources, r.quarantine, r.view)
	return r.view.is
}

// to sends what a type lacks of goal. With keep the client keeps what goal no longer has. It returns false if this must
// wait.
func (t *turn) to(typ xdstype.Type, goal *Resources, keep bool) bool {
	st := &t.types[typ]
	q := question{kind: t.kind(typ), sub: st.sub, from: st.have, to: goal, force: st.force,
		skip: st.refusal.quarantined(),
		keep: keep, sum: st.sum}
	a := t.differ.ask(q)
	if len(a.items) == 0 {
		st.have, st.sum, st.kept, st.force, st.blocked = a.to, a.sum, a.kept, nil, false
		return true
	}
	if st.waiting || t.warming(typ, a) {
		st.blocked = true
		return false
	}
	st.kept = a.kept
	batch := t.differ.response(q, a)
	t.send(typ, batch, a.to, a.sum)
	t.follow(typ, batch)
	return true
}

// send sends batch. The client then has to.
func (t *turn) send(typ xdstype.Type, batch *Batch, to *Resources, sum digest) {
	st := &t.types[typ]
	st.have, st.sum, st.force, st.blocked = to, sum, nil, false
	st.waiting = true
	t.sends++
	t.proveBy = time.Time{}
	if len(st.flights) == maxFlights {
		st.flights = append(st.flights[:0:0], st.flights[1:]...)
	}
	st.flights = append(st.flights, flight{batch: batch, to: had{to, st.sub}, seq: t.sends, since: t.now})
	st.log.sent(batch, t.now)
	t.emit(Effect{Kind: Send, Type: typ, TypeURL: batch.TypeURL, Batch: batch})
}

// follow marks the endpoints of the clusters that batch changes, so that they are sent after it: Envoy keeps a changed
// cluster warming until they come, and does not ask for them (protocol.md 9). A client that has not asked for EDS yet
// gets them in full when it does. It does nothing for types whose resources do not warm.
func (t *turn) follow(typ xdstype.Type, batch *Batch) {
	warmer := t.rows.WarmedBy(typ)
	if warmer == xdstype.None {
		return
	}
	changed, _ := batch.names(t.differ.table)
	eds := &t.types[warmer]
	eds.force = t.differ.union(eds.force, changed)
}

// followWhole does what follow does after a first CDS response, which may change every cluster.
func (t *turn) followWhole(typ xdstype.Type, batch *Batch) {
	warmer := t.rows.WarmedBy(typ)
	if warmer == xdstype.None {
		return
	}
	if eds := &t.types[warmer]; !eds.watched || eds.first {
		eds.full = true
		return
	}
	t.follow(typ, batch)
}

// warming reports whether routes may name a cluster that was new in a CDS response which is not ACKed yet: then they
// wait, for CreditWait at most. Types that name no other type never wait.
func (t *turn) warming(typ xdstype.Type, routes interface{ mentions(*Names) bool }) bool {
	named := t.row(typ).Mentions
	if named == xdstype.None {
		return false
	}
	for _, f := range t.types[named].flights {
		if !t.now.Before(f.since.Add(CreditWait)) {
			continue
		}
		if _, added := f.batch.names(t.differ.table); added != nil && routes.mentions(added) {
			return true
		}
	}
	return false
}

// removals sends the removals that were put off, once all that replaces them is in place or RemovalWait is over:
// clusters first; then, when the client has had time to unsubscribe from what belonged to these, the other types.
// Listeners are never put off, for a new one may have the same address.
func (t *turn) removals() {
	if !t.keeps() {
		t.removeBy = time.Time{}
		return
	}
	if t.removeBy.IsZero() {
		t.removeBy = t.now.Add(RemovalWait)
	}
	if !t.settled() && t.now.Before(t.removeBy) {
		return
	}
	for i := range t.types {
		typ, st := xdstype.Type(i), &t.types[i]
		if t.row(typ).Removal != xdstype.Last {
			continue
		}
		if st.kept && !t.to(typ, t.goal(typ, st.at), false) || st.waiting && t.now.Before(t.removeBy) {
			break
		}
	}
	if !t.keeps() {
		t.removeBy = time.Time{}
	}
}

func (s *Session) keeps() bool {
	for i := range s.types {
		if s.types[i].kept && s.row(xdstype.Type(i)).Removal == xdstype.Last {
			return true
		}
	}
	return false
}

// settled reports whether the client has accepted all that is desired but the removals. It does not wait for the ACK of
// CDS, which may depend on secrets.
func (s *Session) settled() bool {
	for typ := range s.types {
		st := &s.types[typ]
		if st.watched && (st.blocked || st.at != s.desired || st.waiting && !s.warms(xdstype.Type(typ))) {
			return false
		}
	}
	return true
}
