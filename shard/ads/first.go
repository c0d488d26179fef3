package ads

import (
	"slices"

	"github.com/pilotd/pilotd/xdstype"
)

// firstAnswer answers the first request of a type. What the client proves to have by its versions is not sent again,
// with the exceptions of protocol.md 1, 2 and 6: a client in doubt, endpoints that a warming cluster waits for, and the
// first response of the stream. False is that it may not be sent yet: routes that are new to a client with routes in
// use wait for new clusters as ever (protocol.md 11).
func (t *turn) firstAnswer(typ xdstype.Type, goal *Resources) bool {
	st := &t.types[typ]
	if t.row(typ).Mentions != xdstype.None && t.renews(typ, goal) &&
		t.warming(typ, t.differ.whole(t.kind(typ), st.sub, goal)) {
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

// renews reports whether a client that connects again has other resources of a type than goal.
func (t *turn) renews(typ xdstype.Type, goal *Resources) bool {
	st := &t.types[typ]
	if t.opts.Delta {
		return st.initial != nil
	}
	return st.version != "" && st.version != t.differ.whole(t.kind(typ), st.sub, goal).sum.version()
}

// firstSotW answers a State-of-the-World request. A version proves that the client accepted these names at these
// versions, not that it has kept them: one that unsubscribes forgets, keeps the version, and may subscribe again on a
// later stream. That is told from a client that connects again by what it answered on this stream before: nothing.
func (t *turn) firstSotW(typ xdstype.Type, goal *Resources) {
	st := &t.types[typ]
	k := t.kind(typ)
	if st.sub.None() {
		st.have = goal
		return
	}
	sum := t.differ.whole(k, st.sub, goal).sum
	knows := st.version == sum.version() && !st.doubt && (st.sub.All || !t.answered)
	if knows && !st.full && t.proves(typ, goal) {
		st.have, st.sum, st.accepted = goal, sum, had{goal, st.sub}
		t.to(typ, goal, false) // the endpoints of clusters that have just changed, or the proof
		return
	}
	batch := t.differ.wholeBatch(k, st.sub, goal) // also when nothing of these names exists: the answer tells so
	t.send(typ, batch, goal, sum)
	if !knows {
		t.followWhole(typ, batch)
	}
}

// firstDelta answers a Delta request. A client that has nothing and asks for all there is gets a response without
// resources where there are none (protocol.md 13): it would wait for the first one.
func (t *turn) firstDelta(typ xdstype.Type, goal *Resources) {
	st := &t.types[typ]
	k := t.kind(typ)
	var batch *Batch
	whole := st.initial == nil
	if whole {
		if !t.differ.whole(k, st.sub, goal).none() {
			batch = t.differ.wholeBatch(k, st.sub, goal)
		}
	} else {
		batch = t.reconcile(typ, goal)
	}
	if batch == nil && !whole {
		st.accepted, st.initial = had{goal, st.sub}, nil
	}
	if batch == nil && (t.sends == 0 || whole && st.sub.All) {
		batch = t.differ.nothing(k)
	}
	if batch == nil {
		st.have, st.force = goal, nil
		return
	}
	t.send(typ, batch, goal, digest{})
	if whole {
		t.followWhole(typ, batch)
	} else {
		t.follow(typ, batch)
	}
}

// nothing returns the response without resources, one for all that are to get it in this pass. Its digest is that of no
// resources.
func (b *Differ) nothing(k kind) *Batch {
	key := question{kind: k, keep: true}
	a, ok := b.answers[key]
	if !ok {
		a = &answer{batch: b.finish(&Batch{TypeURL: k.row.URL, Delta: k.delta}, digest{})}
		b.answers[key] = a
	}
	return a.batch
}

// reconcile returns what a Delta client lacks that says what it has; nil when nothing.
func (t *turn) reconcile(typ xdstype.Type, goal *Resources) *Batch {
	st := &t.types[typ]
	k := t.kind(typ)
	w := t.differ.whole(k, st.sub, goal)
	g := gap{wholeKey{k, st.sub, goal}, st.initial.fingerprint, st.force, !st.doubt && !st.full}
	if g.believe && g.force == nil && len(w.removed) == 0 && g.fingerprint == t.differ.fingerprintOfWhole(w) {
		return nil
	}
	batch, known := t.differ.gaps[g]
	if !known {
		batch = t.differ.fill(g, w, st.initial.All())
		t.differ.gaps[g] = batch
	}
	return batch
}

// gap is what a Delta client that comes back has and should have: those with equal ones share the response.
type gap struct {
	wholeKey
	fingerprint fingerprint
	force       *Names
	believe     bool
}

// fill returns the response that brings a client with those versions to all of w; nil when it has that. The names that
// it has are not what it subscribes to; those that no longer exist are removed.
func (b *Differ) fill(g gap, w *whole, has map[string]string) *Batch {
	out := &Batch{TypeURL: g.kind.row.URL, Delta: true}
	for _, e := range w.entries {
		version, claims := has[e.Name()]
		if g.believe && claims && version == e.Version() && !g.force.Contains(e.Name()) {
			continue
		}
		out.items = append(out.items, item{name: e.Name(), new: e, had: claims})
		out.Entries = append(out.Entries, e)
	}
	out.Removed = slices.Clone(w.removed)
	for name := range has {
		if b.lookup(g.kind, g.sub, g.of, name) == nil {
			out.Removed = append(out.Removed, name)
		}
	}
	slices.Sort(out.Removed)
	out.Removed = slices.Compact(out.Removed)
	for _, name := range out.Removed {
		out.items = append(out.items, item{name: name})
	}
	if len(out.items) == 0 {
		return nil
	}
	return b.finish(out, digest{})
}
