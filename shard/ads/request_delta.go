package ads

// wildcard is the name that subscribes to all resources of a type.
const wildcard = "*"

// delta takes a Delta request: it answers a response if it has a nonce, and may change the subscription in any case.
func (q intake) delta(r *Request) {
	st := &q.types[q.typ]
	if !st.watched {
		q.watch(r)
		st.initial = r.Initial
		st.sub = q.subscribed(Subscription{All: r.Subscribe == nil}, r)
		if q.within() {
			q.pump()
		}
		return
	}
	if r.Nonce != "" && !q.reply(q.typ, r) {
		q.emit(Effect{Kind: Expired, Type: q.typ, TypeURL: r.TypeURL})
	}
	if r.Subscribe != nil || r.Unsubscribe != nil {
		q.amend(r)
	}
	if q.within() {
		q.pump()
	}
}

// subscribed returns sub with what r subscribes to and unsubscribes from.
func (q intake) subscribed(sub Subscription, r *Request) Subscription {
	table := q.differ.table
	sub.All = (sub.All || r.Subscribe.Contains(wildcard)) && !r.Unsubscribe.Contains(wildcard)
	sub.Names = table.Minus(q.differ.union(sub.Names, table.proper(r.Subscribe)), r.Unsubscribe)
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
func (q intake) amend(r *Request) {
	st := &q.types[q.typ]
	old := st.sub
	st.sub = q.subscribed(old, r)
	if st.sub.All && r.Subscribe.Contains(wildcard) && !st.first {
		st.have, st.force = nil, nil
		return
	}
	send := r.Subscribe
	switch {
	case !st.sub.All:
		send = q.differ.table.Minus(send, r.Unsubscribe)
	case old.All:
		send = q.differ.union(send, r.Unsubscribe)
	}
	st.force = q.differ.union(st.force, q.differ.table.proper(send))
}
