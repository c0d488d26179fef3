package ads

import "slices"

// wildcard is the name that subscribes to all resources of a type.
const wildcard = "*"

// delta is a Delta request: an answer to a response if it has a nonce, and in any case what it changes of the subscription.
func (t *turn) delta(typ Type, r *Request) {
	st := &t.types[typ]
	if !st.watched {
		t.watch(typ, r)
		st.initial = r.Initial
		st.sub = t.subscribed(Subscription{All: len(r.Subscribe) == 0}, r)
		if t.within(typ) {
			t.pump()
		}
		return
	}
	if r.Nonce != "" && !t.reply(typ, r) {
		t.emit(Effect{Kind: Expired, Type: typ, TypeURL: r.TypeURL})
	}
	if len(r.Subscribe)+len(r.Unsubscribe) > 0 {
		t.amend(typ, r)
	}
	if t.within(typ) {
		t.pump()
	}
}

// subscribed is sub with what r subscribes to and unsubscribes from.
func (t *turn) subscribed(sub Subscription, r *Request) Subscription {
	isAll := func(name string) bool { return name == wildcard }
	sub.All = (sub.All || slices.ContainsFunc(r.Subscribe, isAll)) && !slices.ContainsFunc(r.Unsubscribe, isAll)
	add := slices.DeleteFunc(slices.Clone(r.Subscribe), isAll)
	remove := slices.DeleteFunc(slices.Clone(r.Unsubscribe), isAll)
	sub.Names = t.book.table.Edit(sub.Names, add, remove)
	return sub
}

// amend changes a Delta subscription. A name that is subscribed to is sent, also when it was so before; one that is unsubscribed from while
// the wildcard still covers it is sent too, so that the client knows what it has.
func (t *turn) amend(typ Type, r *Request) {
	st := &t.types[typ]
	old := st.sub
	st.sub = t.subscribed(old, r)
	send := slices.Clone(r.Subscribe)
	if st.sub.All && old.All {
		send = append(send, r.Unsubscribe...)
	}
	if st.sub.All && slices.Contains(r.Subscribe, wildcard) && !st.first {
		st.have, st.force = nil, nil
		return
	}
	send = slices.DeleteFunc(send, func(name string) bool { return !st.sub.Has(name) || name == wildcard })
	st.force = t.book.union(st.force, t.book.table.Of(send))
}
