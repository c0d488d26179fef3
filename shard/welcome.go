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

// entrance answers a worker's clients that connect. Owned by the worker goroutine.
type entrance struct {
	// Immutable after newWorker.
	worker *worker

	line     *admission.Line[*client] // members with a type's first request, which are answered one by one
	crowded  bool                     // several have come in this round
	welcomed time.Time                // when a client that connects was answered last
}

// opens reports whether r is the first request of the stream, or the first of one of its types.
func (e *entrance) opens(m *client, r *ads.Request) bool {
	if !m.entered {
		return true
	}
	typ, served := e.worker.shards.opts.Types.Of(r.TypeURL)
	return served && r.Nonce == "" && m.session.Subscription(typ).None()
}

// queue has a client wait for its turn.
func (e *entrance) queue(m *client, r *ads.Request) {
	if m.waiter != nil {
		panic("shard: a client waits with two requests")
	}
	if !m.entered {
		m.priority = e.priorityOf(m, r)
	}
	e.worker.shards.budget.Settle(&m.debt) // one that asks for the next type has read what it was given
	turn := admission.TurnOf(m.id, m.came, m.priority)
	m.first, m.waiter = r, &admission.Waiter[*client]{Client: m, Turn: turn, Priority: m.priority}
	e.line.Put(m.waiter)
	e.worker.stats.connecting.Add(1)
}

// unqueue takes a client out of the line, if it is there.
func (e *entrance) unqueue(m *client) {
	if m.waiter == nil {
		return
	}
	e.line.Remove(m.waiter)
	e.worker.stats.connecting.Add(-1)
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
func (e *entrance) priorityOf(m *client, r *ads.Request) admission.Priority {
	switch p := firstPriority(r); {
	case p == admission.NewProxy || !e.crowded && !e.worker.shards.budget.Full():
		return p
	case !m.doubted && e.worker.differ.Current(r, m.group.desired):
		return admission.CurrentProxy
	}
	return admission.StaleProxy
}

// welcome answers those that connect, until something else comes or too many bytes are under way.
func (e *entrance) welcome() {
	for begin := e.worker.now(); e.line.Len() > 0; {
		if e.worker.slots.setsCame.Load() || !e.worker.shards.budget.Ask(e.worker.index, e.line.First().Turn) {
			return
		}
		m := e.line.First().Client
		e.worker.guard(m, "a first request", func() { e.enter(m) })
		e.worker.shards.budget.Answered()
		e.worker.lookAtEndpoints()
		if e.worker.now().Sub(begin) > timeSlice {
			e.worker.slots.signal()
			return
		}
	}
	e.worker.shards.budget.Withdraw(e.worker.index)
}

// enter answers the request that a client waits with.
func (e *entrance) enter(m *client) {
	r, before := m.first, e.worker.sender.given
	e.unqueue(m)
	if !m.entered {
		m.entered = true
		e.worker.shards.opts.Metrics.Admitted(m.priority, e.worker.now().Sub(m.came))
		e.worker.carryOut(m, m.session.SetDesired(e.worker.now(), e.worker.differ, e.worker.desiredFor(m)),
			e.worker.now())
	}
	e.worker.decide(m, r)
	if n := e.worker.sender.given - before; n > 0 {
		e.worker.shards.budget.Spend(&m.debt, n)
		e.welcomed = e.worker.now()
		m.limit = e.welcomed.Add(grace)
		e.worker.setTimer(m)
	}
}
