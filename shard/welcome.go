package shard

import (
	"time"

	"github.com/pilotd/pilotd/shard/ads"
)

// A proxy that connects asks for one type after the other, and the first answer to each is its most costly one. These
// answers are given one by one, in the order of claims, when all else that has come is done: acknowledgements,
// subscriptions, ResourceSets, timers. After each of them the endpoint slot is looked at, and a new ResourceSet
// interrupts them. A proxy that has begun keeps its claim, so those that came first are done first.

const (
	// stint is how long a worker welcomes before it looks at its inbox again.
	stint = 5 * time.Millisecond
	// grace is how long what a client was given counts in the budget while the client does not show that it has read
	// it.
	grace = 2 * time.Second
)

// opens reports whether r is the first request of the stream, or the first of one of its types.
func (w *worker) opens(m *member, r *ads.Request) bool {
	if !m.entered {
		return true
	}
	typ, served := w.shards.opts.Types.Of(r.TypeURL)
	return served && r.Nonce == "" && m.session.Subscription(typ).None()
}

// queue has a member wait for its turn.
func (w *worker) queue(m *member, r *ads.Request) {
	if m.turn != nil {
		panic("shard: a member waits with two requests")
	}
	if !m.entered {
		m.need = w.needOf(m, r)
	}
	w.shards.budget.settle(m) // one that asks for the next type has read what it was given
	m.first, m.turn = r, &place{member: m, claim: claimOf(m, m.need), need: m.need}
	w.connecting.push(m.turn)
	w.figures.connecting.Add(1)
}

// unqueue takes a member out of the line, if it is there.
func (w *worker) unqueue(m *member) {
	if m.turn == nil {
		return
	}
	w.connecting.remove(m.turn)
	w.figures.connecting.Add(-1)
	m.first, m.turn = nil, nil
}

// needOf is the need of a member by its first request. Alone, it need not be known.
func (w *worker) needOf(m *member, r *ads.Request) Need {
	switch need := firstNeed(r); {
	case need == NewProxy || !w.crowded && !w.shards.budget.full():
		return need
	case !m.doubted && w.book.Current(r, m.crew.target):
		return CurrentProxy
	}
	return StaleProxy
}

// welcome answers those that connect, until something else comes or too many bytes are under way.
func (w *worker) welcome() {
	if w.endpoints == nil { // never from half a set
		return
	}
	for begin := w.now(); w.connecting.len() > 0; {
		if w.setsCame.Load() || !w.shards.budget.ask(w.index, w.connecting.heap[0].claim) {
			return
		}
		m := w.connecting.heap[0].member
		w.guard(m, "a first request", func() { w.enter(m) })
		w.lookAtEndpoints()
		if w.now().Sub(begin) > stint {
			w.signal()
			return
		}
	}
	w.shards.budget.withdraw(w.index)
}

// enter answers the request that a member waits with.
func (w *worker) enter(m *member) {
	r, before := m.first, w.given
	w.unqueue(m)
	if !m.entered {
		m.entered = true
		w.shards.opts.Metrics.Admitted(m.need, w.now().Sub(m.came))
		w.carryOut(m, m.session.Retarget(w.now(), w.book, m.crew.target), w.now())
	}
	w.decide(m, r)
	if n := w.given - before; n > 0 {
		w.shards.budget.spend(m, n)
		w.welcomed = w.now()
		m.limit = w.welcomed.Add(grace)
		w.setTimer(m)
	}
}
