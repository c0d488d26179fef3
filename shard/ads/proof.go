package ads

import (
	"time"

	"github.com/pilotd/pilotd/xdstype"
)

// A stream that ends without any response counts as failed, and its client waits longer before each next one
// (protocol.md 2). So a client that has everything is sent something that it has: with Delta an empty response; with
// State-of-the-World, where a root is complete and an empty one takes everything away, the smallest resource of a type
// that may be answered in part.

// ProofWait is how long a State-of-the-World stream may go without a response while its client has all that it asked
// for: for that long another type may be asked for, or change. Clients ask for all types at once when they connect
// again, but requests queue in a storm.
const ProofWait = 5 * time.Second

// proves reports whether a client that has all of a type need not be sent that again, and sees to it that its stream
// has a response: the smallest resource of a type that may be answered in part, or in the end of a root. A root that is
// asked for by name, or what does not exist, is small, and is sent at once.
//
// So only a client whose roots are wildcards is kept waiting. What it asks for late on a stream, and has a version of,
// it asks for because of a response: then it has answered one. A client with names asks when its application does, and
// may have dropped what its version tells.
func (t *turn) proves(typ xdstype.Type, goal *Resources) bool {
	st := &t.types[typ]
	switch {
	case t.sends > 0:
		return true
	case st.sub.All:
		if t.proveBy.IsZero() {
			t.proveBy = t.now.Add(ProofWait)
		}
		return true
	case t.row(typ).Complete:
		return false
	}
	least := t.differ.smallest(t.kind(typ), st.sub, goal)
	st.force = t.differ.union(st.force, least)
	return least != nil
}

// overdue sends the smaller of the roots, in full, to a client that has not got anything else by now.
func (t *turn) overdue() {
	if t.proveBy.IsZero() || t.now.Before(t.proveBy) {
		return
	}
	t.proveBy = time.Time{}
	var root *whole
	var of xdstype.Type
	for i := range t.types {
		typ, st := xdstype.Type(i), &t.types[i]
		if !t.row(typ).Complete || !st.watched || st.first || !st.sub.All {
			continue
		}
		if w := t.differ.whole(t.kind(typ), st.sub, st.have); len(w.entries) > 0 &&
			(root == nil || w.size() < root.size()) {
			root, of = w, typ
		}
	}
	if root != nil {
		st := &t.types[of]
		t.send(of, t.differ.wholeBatch(t.kind(of), st.sub, st.have), st.have, st.sum)
	}
}

// smallest returns the name of the smallest resource of c that sub asks for; nil when there is none.
func (b *Differ) smallest(k kind, sub Subscription, c *Resources) *Names {
	w := b.whole(k, sub, c)
	if w.least == nil && len(w.entries) > 0 {
		least := w.entries[0]
		for _, e := range w.entries {
			if e.Size() < least.Size() {
				least = e
			}
		}
		w.least = b.table.Of([]string{least.Name()})
	}
	return w.least
}

// size returns how many bytes the resources have.
func (w *whole) size() (n int) {
	for _, e := range w.entries {
		n += e.Size()
	}
	return n
}
