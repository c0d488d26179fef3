package shard

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/snapshot/value"
)

// handleMail handles what came for a client. A client whose stream has ended is dropped: what came with that news, or
// comes after it, is neither assigned nor answered. Its undecided request only gives up its place, for which the reader
// of the stream may be waiting.
func (w *worker) handleMail(m *client, in mail) {
	if m.gone = m.gone || in.gone; m.gone {
		w.drop(m)
		select {
		case <-m.room:
		default:
		}
		return
	}
	if in.assigned != nil {
		w.assign(m, in.assigned, in.request)
	}
	switch {
	case in.request == nil:
	case w.entrance.opens(m, in.request):
		w.entrance.queue(m, in.request)
	default:
		w.decide(m, in.request)
	}
}

// decide answers a request.
func (w *worker) decide(m *client, r *ads.Request) {
	w.personalize(m, r)
	w.carryOut(m, m.session.Receive(w.now(), w.differ, r), m.since)
	w.roster.joinCohort(m)
	if m.debt.Owes() && !m.session.Unread() {
		w.shards.budget.Settle(&m.debt)
	}
	<-m.room
}

// assign puts a client into the class group of its class. One that has not been answered yet waits for its turn.
func (w *worker) assign(m *client, a *assignment, first *ads.Request) {
	if m.session == nil {
		m.session = ads.New(w.differ, ads.Options{
			Delta:        first.Delta,
			Sidecar:      a.class.Type == value.SidecarProxy,
			MaxNames:     w.shards.opts.MaxNames,
			MaxNameBytes: w.shards.opts.MaxNameBytes,
			Doubt:        a.doubt,
		})
		m.doubted = a.doubt != 0
		w.stats.members.Add(1)
	}
	if w.endpoints.table == nil {
		w.endpoints.table = w.shards.opts.Endpoints()
	}
	c := w.roster.byClass[a.class]
	if c == nil {
		c = newClassGroup(a.class)
		w.setDesired(c, a.set)
		w.roster.add(c)
	} else if a.set.Revision > c.desired.set.Revision {
		w.handleResourceSet(a.class, a.set, w.now())
	}
	w.leaveGroup(m)
	w.roster.join(m, c)
	if m.entered {
		w.roster.joinCohort(m)
		w.carryOut(m, m.session.SetDesired(w.now(), w.differ, w.desiredFor(m)), w.now())
	}
}

// drop forgets a client.
func (w *worker) drop(m *client) {
	w.timers.remove(m)
	w.entrance.unqueue(m)
	w.shards.budget.Settle(&m.debt)
	if w.entrance.line.Len() == 0 {
		w.shards.kept.forget()
	}
	if m.session == nil {
		return
	}
	s := m.session
	m.session = nil
	w.leaveAudience(m)
	w.leaveGroup(m)
	w.stats.members.Add(-1)
	w.shards.opts.contain("the end of a stream", func() {
		for _, e := range s.End(w.differ) {
			w.shards.opts.Metrics.Healed(w.shards.offencesOf(e.Offences))
		}
	})
}

// setDesired gives a class group what its members should have from now on.
func (w *worker) setDesired(c *classGroup, set *classes.ResourceSet) {
	prev := c.desired
	c.desired = w.endpoints.newDesired(set, prev)
	w.endpoints.joins.retain(c.desired.endpoints)
	if prev != nil {
		w.endpoints.joins.release(prev.endpoints)
	}
}

// leaveGroup takes a client out of its class group, and forgets the class group if it was the last.
func (w *worker) leaveGroup(m *client) {
	if c := w.roster.leave(m); c != nil {
		w.endpoints.joins.release(c.desired.endpoints)
	}
}

// handleResourceSet brings the class group of a class to a new ResourceSet. at is when it came.
func (w *worker) handleResourceSet(class *classes.Class, set *classes.ResourceSet, at time.Time) {
	c := w.roster.byClass[class]
	if c == nil || set.Revision < c.desired.set.Revision || set == c.desired.set {
		return
	}
	if !w.shards.opts.contain("the desired of a class", func() { w.setDesired(c, set) }) {
		return // the group stays at what it had
	}
	for _, group := range c.cohorts {
		for m := range group.members {
			w.guard(m, "a new ResourceSet", func() {
				w.carryOut(m, m.session.SetDesired(w.now(), w.differ, w.desiredFor(m)), at)
			})
		}
		w.lookAtEndpoints()
	}
}

// carryOut carries out the Effects of a Session. at is when the change came that they follow from; zero for none.
func (w *worker) carryOut(m *client, effects []ads.Effect, at time.Time) {
	metrics := &w.shards.opts.Metrics
	sent := false
	for _, e := range effects {
		switch e.Kind {
		case ads.Send:
			w.sender.send(m, e, at)
			sent = true
		case ads.Refused:
			metrics.Refused(w.shards.refusalOf(m.proxy, e))
		case ads.Healed:
			metrics.Healed(w.shards.offencesOf(e.Offences))
		case ads.Expired:
			metrics.Expired(e.Type)
		case ads.Unserved:
			metrics.Unserved(e.TypeURL)
		case ads.Wanted:
			m.want(e.Type)
		case ads.Doubtful, ads.Certain:
			w.shards.doubt(m.proxy.ID, e)
		case ads.Exceeded:
			m.stream.Close(status.Error(codes.ResourceExhausted, e.Err.Error()))
		}
	}
	switch pending := m.session.Pending(); {
	case pending && m.since.IsZero():
		m.since = at
	case !pending:
		if sent && !at.IsZero() {
			metrics.Converged(w.sender.sinceChange(at))
		}
		m.since = time.Time{}
	}
	w.setTimer(m)
}

// setTimer makes the worker look at a client at its Session's Deadline, or when its Debt ends.
func (w *worker) setTimer(m *client) {
	at := m.session.Deadline()
	if !m.limit.IsZero() && (at.IsZero() || m.limit.Before(at)) {
		at = m.limit
	}
	w.timers.set(m, at)
}

// doubt notes that a node's versions are not to be believed, or that they are again.
func (s *Shards) doubt(node string, e ads.Effect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Kind == ads.Doubtful {
		s.doubts.add(node, e.Type)
	} else {
		s.doubts.remove(node, e.Type)
	}
}
