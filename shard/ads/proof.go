package ads

import (
	"time"

	"github.com/pilotd/pilotd/xdstype"
)

// To a client, a stream that ends without any response has failed, and it waits longer before it tries again
// (protocol.md 2). So a client that has everything is still sent something. With Delta this is an empty response. With
// State-of-the-World an empty response for clusters or listeners would remove them all; there it is the smallest
// resource of a type whose responses need not be complete.

// ProofWait is how long a State-of-the-World stream may go without a response while its client has all that it asked
// for. In that time the client may ask for another type, or something may change, which makes the extra response
// unnecessary. Clients ask for all types at once when they connect again, but requests queue in a storm.
const ProofWait = 5 * time.Second

// proves reports whether a client that has all of a type need not be sent that again. It makes sure that the stream
// gets some response: the smallest resource of a type whose responses need not be complete, or, when ProofWait is over,
// a root type in full. Roots that are asked for by name, or do not exist, are small: they are sent at once, and proves
// returns false.
//
// So only a client that subscribes to all clusters and listeners waits. What such a client asks for later on the stream
// it asks for because of a response that it has answered. A client that subscribes by name asks when its application
// does, and may have dropped what its version stands for.
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

// overdue sends the smaller of the root types, in full, to a client that has been sent nothing else until now.
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
