package ads

import "github.com/pilotd/pilotd/xdstype"

// wildcard is the name that subscribes to all resources of a type.
const wildcard = "*"

// delta is a Delta request: an answer to a response if it has a nonce, and in any case what it changes of the
// subscription.
func (t *turn) delta(typ xdstype.Type, r *Request) {
	st := &t.types[typ]
	if !st.watched {
		t.watch(typ, r)
		st.initial = r.Initial
		st.sub = t.subscribed(Subscription{All: r.Subscribe == nil}, r)
		if t.within(typ) {
			t.pump()
		}
		return
	}
	if r.Nonce != "" && !t.reply(typ, r) {
		t.emit(Effect{Kind: Expired, Type: typ, TypeURL: r.TypeURL})
	}
	if r.Subscribe != nil || r.Unsubscribe != nil {
		t.amend(typ, r)
	}
	if t.within(typ) {
		t.pump()
	}
}

// subscribed is sub with what r subscribes to and unsubscribes from.
func (t *turn) subscribed(sub Subscription, r *Request) Subscription {
	table := t.differ.table
	sub.All = (sub.All || r.Subscribe.Contains(wildcard)) && !r.Unsubscribe.Contains(wildcard)
	sub.Names = table.Minus(t.differ.union(sub.Names, table.proper(r.Subscribe)), r.Unsubscribe)
	return sub
}

// proper returns the names but the wildcard.
func (t *NamesTable) proper(n *Names) *Names {
	if !n.Contains(wildcard) {
		return n
	}
	return t.Edit(n, nil, []string{wildcard})
}

// amend changes a Delta subscription. A name that is subscribed to is sent, also when it was so before; one that is
// unsubscribed from while the wildcard still covers it is sent too, so that the client knows what it has.
func (t *turn) amend(typ xdstype.Type, r *Request) {
	st := &t.types[typ]
	old := st.sub
	st.sub = t.subscribed(old, r)
	if st.sub.All && r.Subscribe.Contains(wildcard) && !st.first {
		st.have, st.force = nil, nil
		return
	}
	send := r.Subscribe
	switch {
	case !st.sub.All:
		send = t.differ.table.Minus(send, r.Unsubscribe)
	case old.All:
		send = t.differ.union(send, r.Unsubscribe)
	}
	st.force = t.differ.union(st.force, t.differ.table.proper(send))
}
