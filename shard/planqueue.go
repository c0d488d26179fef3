package shard

import "sync"

// planQueue is where proxies wait until the planner takes them: a few at a time, so that a change of configuration
// never waits behind a crowd that connects, and the one that needs most goes first.
type planQueue struct {
	// Immutable after New.
	planner Planner
	most    int // that the planner has at once

	mu sync.Mutex
	// Guarded by mu.
	waiting line
	planned int  // proxies that the planner has and has not answered
	short   bool // memory is short: one proxy at a time
}

// join asks for the ResourceSet of a member when its turn comes.
func (q *planQueue) join(m *member, n Need) {
	q.mu.Lock()
	defer q.mu.Unlock()
	m.waits = &place{member: m, claim: claimOf(m, n), need: n}
	q.waiting.push(m.waits)
	q.pass()
}

// answered is that the planner has told the class of a member, perhaps again.
func (q *planQueue) answered(m *member) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.done(m)
}

// leave forgets a member.
func (q *planQueue) leave(m *member) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p := m.waits; p != nil {
		q.waiting.remove(p)
		m.waits = nil
		return
	}
	q.planner.Detach(m.id)
	q.done(m)
}

// done takes a member from those that the planner is asked for. The caller holds mu.
func (q *planQueue) done(m *member) {
	if m.asked {
		m.asked = false
		q.planned--
		q.pass()
	}
}

// limit is how many proxies the planner may have now. The caller holds mu.
func (q *planQueue) limit() int {
	if q.short {
		return 1
	}
	return q.most
}

// ration has proxies planned for one at a time, or no longer.
func (q *planQueue) ration(short bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.short = short
	q.pass()
}

// pass lets in as many as the planner may have. The caller holds mu.
func (q *planQueue) pass() {
	for q.planned < q.limit() && q.waiting.len() > 0 {
		m := q.waiting.pop().member
		m.waits, m.asked = nil, true
		q.planned++
		q.planner.Attach(m.id, m.proxy)
	}
}

// tell tells about those that wait.
func (q *planQueue) tell() (out []Waiting) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range q.waiting.heap {
		out = append(out, Waiting{Proxy: p.member.proxy, Need: p.need, Since: p.member.came, claim: p.claim})
	}
	return out
}

// len is how many wait.
func (q *planQueue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.len()
}
