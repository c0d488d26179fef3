package ads

import (
	"fmt"

	"github.com/pilotd/pilotd/xdstype"
)

// intake is a turn that is about a request of one type.
type intake struct {
	*turn
	typ xdstype.Type
}

// sotw takes a State-of-the-World request.
func (q intake) sotw(r *Request) {
	st := &q.types[q.typ]
	if !st.watched {
		q.watch(r)
		st.version = r.Version
		st.named = r.Names != nil
		st.sub = q.listed(r.Names)
		if q.within() {
			q.pump()
		}
		return
	}
	if !st.first && r.Nonce != st.log.nonce() {
		// About an older response: of one that was sent when the credit came back by time it still tells whether it was
		// taken. What else it says is repeated in the answer to the newest.
		if !q.reply(q.typ, r) {
			q.emit(Effect{Kind: Expired, Type: q.typ, TypeURL: r.TypeURL})
		}
		q.pump()
		return
	}
	q.reply(q.typ, r)
	st.named = st.named || r.Names != nil
	q.resubscribe(q.listed(r.Names))
	if q.within() {
		q.pump()
	}
}

// watch notes the first request of a type.
func (q intake) watch(r *Request) {
	st := &q.types[q.typ]
	st.watched, st.first = true, true
	st.doubt = st.doubt || r.Error != nil
	if warmed := q.row(q.typ).Warms; warmed != xdstype.None && !q.types[warmed].watched {
		st.full = true // a cluster is warming (protocol.md 1)
	}
	if q.row(q.typ).OnDemand {
		q.emit(Effect{Kind: Wanted, Type: q.typ, TypeURL: r.TypeURL})
	}
}

// listed returns what a list of names subscribes to: an empty one to all, of a type that allows that, while the stream
// never named any; one with the wildcard among them to all in any case.
func (q intake) listed(names *Names) Subscription {
	if names == nil {
		return Subscription{All: !q.types[q.typ].named && q.row(q.typ).Wildcard}
	}
	return Subscription{All: names.Contains(wildcard), Names: q.differ.table.proper(names)}
}

// resubscribe replaces a subscription: what it adds is to be sent.
func (q intake) resubscribe(sub Subscription) {
	st := &q.types[q.typ]
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
		st.force = q.differ.union(st.force, q.differ.table.Minus(sub.Names, old.Names))
	}
	q.resum(q.typ, old)
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

// within reports whether a stream subscribes to no more than it may. It ends one that subscribes to more.
func (q intake) within() bool {
	names, err := q.types[q.typ].sub.Names, error(nil)
	bytes, fresh := 0, 0
	for i := range q.types {
		bytes += q.types[i].sub.Names.Bytes()
		fresh += q.types[i].sub.Names.fresh()
	}
	switch {
	case q.opts.MaxNames > 0 && names.Len() > q.opts.MaxNames:
		err = ErrTooManyNames
	case q.opts.MaxNameBytes > 0 && bytes > q.opts.MaxNameBytes:
		err = fmt.Errorf("%w: %d, the limit is %d", ErrTooManyBytes, bytes, q.opts.MaxNameBytes)
	case fresh > 0 && bytes > fairBytes && !q.differ.table.hasRoom(spareShare*fresh):
		err = fmt.Errorf("%w: this one names %d", ErrAllTooManyBytes, bytes)
	default:
		for i := range q.types {
			q.types[i].sub.Names.admit()
		}
		return true
	}
	q.emit(Effect{Kind: Exceeded, Type: q.typ, Err: err})
	return false
}
