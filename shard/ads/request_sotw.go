package ads

import (
	"fmt"

	"github.com/pilotd/pilotd/xdstype"
)

// sotw is a State-of-the-World request.
func (t *turn) sotw(typ xdstype.Type, r *Request) {
	st := &t.types[typ]
	if !st.watched {
		t.watch(typ, r)
		st.version = r.Version
		st.named = r.Names != nil
		st.sub = t.listed(typ, r.Names)
		if t.within(typ) {
			t.pump()
		}
		return
	}
	if !st.first && r.Nonce != st.log.nonce() {
		// About an older response: of one that was sent when the credit came back by time it still tells whether it was
		// taken. What else it says is repeated in the answer to the newest.
		if !t.reply(typ, r) {
			t.emit(Effect{Kind: Expired, Type: typ, TypeURL: r.TypeURL})
		}
		t.pump()
		return
	}
	t.reply(typ, r)
	st.named = st.named || r.Names != nil
	t.resubscribe(typ, t.listed(typ, r.Names))
	if t.within(typ) {
		t.pump()
	}
}

// watch notes the first request of a type.
func (t *turn) watch(typ xdstype.Type, r *Request) {
	st := &t.types[typ]
	st.watched, st.first = true, true
	st.doubt = st.doubt || r.Error != nil
	if warmed := t.row(typ).Warms; warmed != xdstype.None && !t.types[warmed].watched {
		st.full = true // a cluster is warming (protocol.md 1)
	}
	if t.row(typ).OnDemand {
		t.emit(Effect{Kind: Wanted, Type: typ, TypeURL: r.TypeURL})
	}
}

// listed returns what a list of names subscribes to: an empty one to all, of a type that allows that, while the stream
// never named any; one with the wildcard among them to all in any case.
func (t *turn) listed(typ xdstype.Type, names *Names) Subscription {
	if names == nil {
		return Subscription{All: !t.types[typ].named && t.row(typ).Wildcard}
	}
	return Subscription{All: names.Contains(wildcard), Names: t.differ.table.proper(names)}
}

// resubscribe replaces a subscription: what it adds is to be sent.
func (t *turn) resubscribe(typ xdstype.Type, sub Subscription) {
	st := &t.types[typ]
	if sub == st.sub {
		return
	}
	old := st.sub
	st.sub = sub
	if st.first {
		return
	}
	switch {
	case sub.All && !old.All:
		st.have, st.force = nil, nil
	case old.All:
		st.force = sub.Names
	default:
		st.force = t.differ.union(st.force, t.differ.table.Minus(sub.Names, old.Names))
	}
	t.resum(typ, old)
}

// resum brings the digest of what the client has to a new subscription.
func (t *turn) resum(typ xdstype.Type, old Subscription) {
	st := &t.types[typ]
	if t.opts.Delta {
		return
	}
	k := t.kind(typ)
	if old.All || st.sub.All {
		st.sum = t.sumOf(typ)
		return
	}
	for name := range t.differ.table.Minus(old.Names, st.sub.Names).All() {
		st.sum = st.sum.minus(digestOf(t.differ.lookup(k, old, st.have, name)))
	}
	for name := range t.differ.table.Minus(st.sub.Names, old.Names).All() {
		st.sum = st.sum.plus(digestOf(t.differ.lookup(k, st.sub, st.have, name)))
	}
}

// sumOf returns the digest of what the client has, from nothing.
func (t *turn) sumOf(typ xdstype.Type) digest {
	st := &t.types[typ]
	if t.opts.Delta {
		return digest{}
	}
	return t.differ.digest(t.kind(typ), st.sub, st.have)
}

const (
	// fairBytes is how much a stream may name while all streams together name too much.
	fairBytes = 64 << 10
	// spareShare is how many times as much as a stream names that nobody else does must be free, of what all streams
	// may name: so those that name very much are refused first, and leave room for the others.
	spareShare = 4
)

// within ends a stream that subscribes to too much; false is that it did.
func (t *turn) within(typ xdstype.Type) bool {
	names, err := t.types[typ].sub.Names, error(nil)
	bytes, fresh := 0, 0
	for i := range t.types {
		bytes += t.types[i].sub.Names.Bytes()
		fresh += t.types[i].sub.Names.fresh()
	}
	switch {
	case t.opts.MaxNames > 0 && names.Len() > t.opts.MaxNames:
		err = ErrTooManyNames
	case t.opts.MaxNameBytes > 0 && bytes > t.opts.MaxNameBytes:
		err = fmt.Errorf("%w: %d, the limit is %d", ErrTooManyBytes, bytes, t.opts.MaxNameBytes)
	case fresh > 0 && bytes > fairBytes && !t.differ.table.hasRoom(spareShare*fresh):
		err = fmt.Errorf("%w: this one names %d", ErrAllTooManyBytes, bytes)
	default:
		for i := range t.types {
			t.types[i].sub.Names.admit()
		}
		return true
	}
	t.emit(Effect{Kind: Exceeded, Type: typ, Err: err})
	return false
}
