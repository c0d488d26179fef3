package ads

// firstAnswer answers the first request of a type. What the client proves to have by its versions is not sent again, with the exceptions of
// protocol.md 1, 2 and 6: a client in doubt, endpoints that a warming cluster waits for, and the first response of the stream. False is that
// it may not be sent yet: routes that are new to a client with routes in use wait for new clusters as ever (protocol.md 11).
func (t *turn) firstAnswer(typ Type, goal *Content) bool {
	st := &t.types[typ]
	if typ == Routes && t.renews(goal) && t.warming(t.book.whole(t.kind(typ), st.sub, goal)) {
		st.blocked = true
		return false
	}
	st.first, st.blocked = false, false
	if t.opts.Delta {
		t.firstDelta(typ, goal)
	} else {
		t.firstSotW(typ, goal)
	}
	st.version = ""
	return true
}

// renews reports whether a client that connects again has older routes than goal.
func (t *turn) renews(goal *Content) bool {
	st := &t.types[Routes]
	if t.opts.Delta {
		return len(st.initial) > 0
	}
	return st.version != "" && st.version != t.book.whole(t.kind(Routes), st.sub, goal).sum.version()
}

// firstSotW answers a State-of-the-World request. A version proves that the client accepted these names at these versions, not that it has
// kept them: one that unsubscribes forgets, keeps the version, and may subscribe again on a later stream. That is told from a client that
// connects again by what it answered on this stream before: nothing.
func (t *turn) firstSotW(typ Type, goal *Content) {
	st := &t.types[typ]
	k := t.kind(typ)
	if st.sub.None() {
		st.have = goal
		return
	}
	sum := t.book.whole(k, st.sub, goal).sum
	knows := st.version == sum.version() && !st.doubt && (st.sub.All || !t.answered)
	if knows && !st.full && t.proves(typ, goal) {
		st.have, st.sum, st.accepted = goal, sum, had{goal, st.sub}
		t.to(typ, goal, false) // the endpoints of clusters that have just changed, or the proof
		return
	}
	batch := t.book.wholeBatch(k, st.sub, goal) // also when nothing of these names exists: the answer tells so
	t.send(typ, batch, goal, sum)
	if typ == Clusters && !knows {
		t.followWhole(batch)
	}
}

func (t *turn) firstDelta(typ Type, goal *Content) {
	st := &t.types[typ]
	k := t.kind(typ)
	var batch *Batch
	whole := len(st.initial) == 0
	if whole {
		if !t.book.whole(k, st.sub, goal).none() {
			batch = t.book.wholeBatch(k, st.sub, goal)
		}
	} else {
		batch = t.reconcile(typ, goal)
	}
	if batch == nil && len(st.initial) > 0 {
		st.accepted, st.initial = had{goal, st.sub}, nil
	}
	if batch == nil && t.sends == 0 {
		batch = t.book.nothing(k)
	}
	if batch == nil {
		st.have, st.force = goal, nil
		return
	}
	t.send(typ, batch, goal, digest{})
	switch {
	case typ == Clusters && whole:
		t.followWhole(batch)
	case typ == Clusters:
		t.follow(batch)
	}
}

// nothing is the response without resources, one for all that are to get it in this pass. Its digest is that of no resources.
func (b *Book) nothing(k kind) *Batch {
	key := question{kind: k, keep: true}
	a, ok := b.answers[key]
	if !ok {
		a = &answer{batch: b.finish(&Batch{TypeURL: k.typ.URL(), Delta: k.delta}, digest{})}
		b.answers[key] = a
	}
	return a.batch
}

// reconcile is what a Delta client lacks that says what it has; nil when nothing. The names that it has are not what it subscribes to;
// those that no longer exist are removed.
func (t *turn) reconcile(typ Type, goal *Content) *Batch {
	st := &t.types[typ]
	k := t.kind(typ)
	out := &Batch{TypeURL: typ.URL(), Delta: true}
	believe := !st.doubt && !st.full
	for _, e := range t.book.whole(k, st.sub, goal).entries {
		version, claims := st.initial[e.Name()]
		if believe && claims && version == e.Version() && !st.force.Contains(e.Name()) {
			continue
		}
		out.items = append(out.items, item{name: e.Name(), new: e, had: claims})
		out.Entries = append(out.Entries, e)
	}
	claimed := make([]string, 0, len(st.initial))
	for name := range st.initial {
		claimed = append(claimed, name)
	}
	for name := range t.book.table.Edit(st.sub.Names, claimed, nil).All() {
		if t.book.lookup(k, st.sub, goal, name) == nil {
			out.Removed = append(out.Removed, name)
			out.items = append(out.items, item{name: name})
		}
	}
	if len(out.items) == 0 {
		return nil
	}
	return t.book.finish(out, digest{})
}
