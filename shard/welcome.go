package shard

import (
	"time"

	"github.com/pilotd/pilotd/shard/admission"
	"github.com/pilotd/pilotd/shard/ads"
)

// A proxy that connects asks for one type after the other, and the first answer to each is its most costly one. These
// answers are given one by one, in the order of their turns, when all else that has come is done: acknowledgements,
// subscriptions, ResourceSets, timers. After each of them the endpoint slot is looked at, and a new ResourceSet
// interrupts them. A proxy that has begun keeps its turn, so those that came first are done first.

const (
	// timeSlice is how long a worker welcomes before it looks at its inbox again.
	timeSlice = 5 * time.Millisecond
	// grace is how long what a client was given counts in the budget while the client does not show that it has read
	// it.
	grace = 2 * time.Second
)

// opens reports whether r is the first request of the stream, or the first of one of its types.
func (w *worker) opens(m *client, r *ads.Request) bool {
	if !m.entered {
		return true
	}
	typ, served := w.shards.opts.Types.Of(r.TypeURL)
	return served && r.Nonce == "" && m.session.Subscription(typ).None()
}

// queue has a client wait for its turn.
func (w *worker) queue(m *client, r *ads.Request) {
	if m.waiter != nil {
		panic("shard: a client waits with two requests")
	}
	if !m.entered {
		m.priority = w.priorityOf(m, r)
	}
	w.shards.budget.Settle(&m.debt) // one that asks for the next type has read what it was given
	turn := admission.TurnOf(m.id, m.came, m.priority)
	m.first, m.waiter = r, &admission.Waiter[*client]{Client: m, Turn: turn, Priority: m.priority}
	w.connecting.Put(m.waiter)
	w.stats.connecting.Add(1)
}

// unqueue takes a client out of the line, if it is there.
func (w *worker) unqueue(m *client) {
	if m.waiter == nil {
		return
	}
	w.connecting.Remove(m.waiter)
	w.stats.connecting.Add(-1)
	m.first, m.waiter = nil, nil
}

// firstPriority returns what is known of a stream by its first request alone.
func firstPriority(r *ads.Request) admission.Priority {
	if r.Version == "" && r.Initial == nil {
		return admission.NewProxy
	}
	return admission.ReturningProxy
}

// priorityOf returns the priority of a client by its first request. While it is alone, it is not worth finding out
// whether the client has what it should have.
func (w *worker) priorityOf(m *client, r *ads.Request) admission.Priority {
	switch p := firstPriority(r); {
	case p == admission.NewProxy || !w.crowded && !w.shards.budget.Full():
		return p
	case !m.doubted && w.differ.Current(r, m.group.desired):
		return admission.CurrentProxy
	}
	return admission.StaleProxy
}

// welcome answers those that connect, until something else comes or too many bytes are under way.
func (w *worker) welcome() {
	for begin := w.now(); w.connecting.Len() > 0; {
		if w.setsCame.Load() || !w.shards.budget.Ask(w.index, w.connecting.First().Turn) {
			return
		}
		m := w.connecting.First().Client
		w.guard(m, "a first request", func() { w.enter(m) })
		w.shards.budget.Answered()
		w.lookAtEndpoints()
		if w.now().Sub(begin) > timeSlice {
			w.signal()
			return
		}
	}
	w.shards.budget.Withdraw(w.index)
}

// enter answers the request that a client waits with.
func (w *worker) enter(m *client) {
	r, before := m.first, w.given
	w.unqueue(m)
	if !m.entered {
		m.entered = true
		w.shards.opts.Metrics.Admitted(m.priority, w.now().Sub(m.came))
		w.carryOut(m, m.session.SetDesired(w.now(), w.differ, m.group.desired), w.now())
	}
	w.decide(m, r)
	if n := w.given - before; n > 0 {
		w.shards.budget.Spend(&m.debt, n)
		w.welcomed = w.now()
		m.limit = w.welcomed.Add(grace)
		w.setTimer(m)
	}
}
