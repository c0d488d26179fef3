package ads

import (
	"slices"

	"github.com/pilotd/pilotd/xdstype"
)

// firstAnswer answers the first request of a type. What the client proves to have by its versions is not sent again,
// with the exceptions of protocol.md 1, 2 and 6: a client in doubt, endpoints that a warming cluster waits for, and the
// first response of the stream. It returns false if the answer must wait: routes that are new to a client with routes
// in use wait for new clusters, as always (protocol.md 11).
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

// firstSotW answers a State-of-the-World request. A version proves that the client once accepted these names at these
// versions, not that it still has them: a client that unsubscribes drops the resources, keeps the version, and may
// subscribe again. A client that has just connected again is known by this: it has not answered anything on this
// stream.
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
	batch := t.differ.wholeBatch(k, st.sub, goal) // also when none of these names exists: an empty answer says so
	t.send(typ, batch, goal, sum)
	if !knows {
		t.followWhole(typ, batch)
	}
}

// firstDelta answers a Delta request. A client that has nothing and asks for everything gets an empty response where
// there are no resources (protocol.md 13), for it waits for a first one.
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

// nothing returns the response without resources, the same for all that get it in this pass.
func (b *Differ) nothing(k kind) *Batch {
	key := question{kind: k, keep: true}
	a, ok := b.answers[key]
	if !ok {
		a = &answer{batch: b.finish(&Batch{TypeURL: k.row.URL, Delta: k.delta}, digest{})}
		b.answers[key] = a
	}
	return a.batch
}

// reconcile returns the response with what a Delta client lacks by its own account (its initial_resource_versions); nil
// if it lacks nothing.
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

// gap is what a Delta client that comes back has, and what it should have. Clients with the same gap share a response.
type gap struct {
	wholeKey
	fingerprint fingerprint
	force       *Names
	believe     bool
}

// fill returns the response that brings a client with the versions in has to all of w; nil if it has all of it. has may
// name resources that the client does not subscribe to; of these, the response removes those that no longer exist.
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
