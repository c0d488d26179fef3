package ads

import "time"

// pump sends what may be sent now, in order: CDS additions and changes, EDS, LDS, RDS, then removals.
//
// Each type follows the one before it, so that a Target reaches a client from CDS downwards: EDS and LDS go to the
// Target that CDS was last sent of, RDS to that of LDS. A type that waits for an ACK holds back those that follow it,
// and what came meanwhile merges.
func (t *turn) pump() {
	if t.target == nil {
		return
	}
	for typ := range Type(numTypes) {
		t.step(typ, t.upstream(typ))
	}
	t.removals()
}

// upstream is the Target that a type is to reach now.
func (s *Session) upstream(typ Type) Target {
	clusters := s.types[Clusters].at
	switch {
	case typ == Clusters || clusters == nil:
		return s.target
	case typ == Routes && s.types[Listeners].at != nil && !s.late(Listeners):
		return s.types[Listeners].at
	}
	return clusters
}

// late reports whether a type holds back its followers for longer than order may cost.
func (s *Session) late(typ Type) bool {
	st := &s.types[typ]
	return st.waiting && st.blocked && !s.now.Before(st.newest().since.Add(CreditWait))
}

func (s *Session) kind(typ Type) kind {
	return kind{typ: typ, delta: s.opts.Delta, fallback: s.opts.Fallback && typ == Routes, sidecar: s.opts.Fallback}
}

// step brings one type to target, as far as it may now.
func (t *turn) step(typ Type, target Target) {
	st := &t.types[typ]
	if !st.watched {
		st.at = target
		return
	}
	goal := t.goal(typ, target)
	if st.first {
		if t.firstAnswer(typ, goal) {
			st.at = target
		}
		return
	}
	for t.to(typ, goal, typ != Listeners) {
		st.at = target
		if !t.idle(typ) {
			return
		}
		goal = t.goal(typ, target)
	}
}

// goal is what the client should have of target: without what it refused.
func (t *turn) goal(typ Type, target Target) *Content {
	st := &t.types[typ]
	content := target.Content(typ, st.sub)
	r := st.refusal
	if r == nil {
		return content
	}
	t.settle(typ, content)
	r.view = t.book.mask(t.kind(typ), content, r.holds, r.view)
	return r.view.is
}

// to sends what brings a type to goal; keep leaves with the client what goal has no more. False is that it may not be
// sent yet.
func (t *turn) to(typ Type, goal *Content, keep bool) bool {
	st := &t.types[typ]
	q := question{kind: t.kind(typ), sub: st.sub, from: st.have, to: goal, force: st.force, skip: st.refusal.held(),
		keep: keep, sum: st.sum}
	a := t.book.ask(q)
	if len(a.items) == 0 {
		st.have, st.sum, st.kept, st.force, st.blocked = a.to, a.sum, a.kept, nil, false
		return true
	}
	if st.waiting || typ == Routes && t.warming(a) {
		st.blocked = true
		return false
	}
	st.kept = a.kept
	batch := t.book.response(q, a)
	t.send(typ, batch, a.to, a.sum)
	if typ == Clusters {
		t.follow(batch)
	}
	return true
}

// send sends batch, which leaves the client with to.
func (t *turn) send(typ Type, batch *Batch, to *Content, sum digest) {
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

// follow has the endpoints of the clusters that batch changes sent after it: Envoy warms a changed cluster until they
// come, and does not ask (protocol.md 9). A client that has not asked for EDS yet gets them in full when it does.
func (t *turn) follow(batch *Batch) {
	changed, _ := batch.names(t.book.table)
	eds := &t.types[Endpoints]
	eds.force = t.book.union(eds.force, changed)
}

// followWhole is follow after a first CDS response that may change every cluster.
func (t *turn) followWhole(batch *Batch) {
	if eds := &t.types[Endpoints]; !eds.watched || eds.first {
		eds.full = true
		return
	}
	t.follow(batch)
}

// warming reports whether routes name a cluster that was new in a CDS response that is not ACKed yet. The wait is
// bounded.
func (t *turn) warming(routes interface{ mentions(*Names) bool }) bool {
	for _, f := range t.types[Clusters].flights {
		if !t.now.Before(f.since.Add(CreditWait)) {
			continue
		}
		if _, added := f.batch.names(t.book.table); added != nil && routes.mentions(added) {
			return true
		}
	}
	return false
}

// removals takes away what was kept, when all that replaces it is in place or the wait is over: first clusters, then,
// when the client has had time to unsubscribe from what belonged to them, the rest. Listeners that go are taken away at
// once: another one may have the address.
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
	for _, typ := range []Type{Clusters, Endpoints, Routes} {
		st := &t.types[typ]
		if st.kept && !t.to(typ, t.goal(typ, st.at), false) || st.waiting && t.now.Before(t.removeBy) {
			break
		}
	}
	if !t.keeps() {
		t.removeBy = time.Time{}
	}
}

func (s *Session) keeps() bool {
	return s.types[Clusters].kept || s.types[Endpoints].kept || s.types[Routes].kept
}

// settled reports whether the client has accepted all that leads to its Target but the removals. CDS need not be ACKed:
// the ACK may wait for secrets.
func (s *Session) settled() bool {
	for typ := range s.types {
		st := &s.types[typ]
		if st.watched && (st.blocked || st.at != s.target || st.waiting && Type(typ) != Clusters) {
			return false
		}
	}
	return true
}
