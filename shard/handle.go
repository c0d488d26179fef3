package shard

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
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
	case w.opens(m, in.request):
		w.queue(m, in.request)
	default:
		w.decide(m, in.request)
	}
}

// decide answers a request.
func (w *worker) decide(m *client, r *ads.Request) {
	w.carryOut(m, m.session.Receive(w.now(), w.differ, r), m.since)
	w.muster(m)
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
	if w.endpoints == nil {
		w.endpoints = w.shards.opts.Endpoints()
	}
	c := w.byClass[a.class]
	if c == nil {
		c = &classGroup{class: a.class, members: map[*client]struct{}{}, cohorts: map[ads.Subscription]*cohort{}}
		w.setDesired(c, a.set)
		w.byClass[a.class] = c
		w.groups[c] = struct{}{}
		w.stats.classes.Add(1)
	} else if a.set.Revision > c.desired.set.Revision {
		w.handleResourceSet(a.class, a.set, w.now())
	}
	w.leaveGroup(m)
	m.group = c
	c.members[m] = struct{}{}
	if m.entered {
		w.muster(m)
		w.carryOut(m, m.session.SetDesired(w.now(), w.differ, c.desired), w.now())
	}
}

// drop forgets a client.
func (w *worker) drop(m *client) {
	w.timers.remove(m)
	w.unqueue(m)
	w.shards.budget.Settle(&m.debt)
	if w.connecting.Len() == 0 {
		w.shards.kept.forget()
	}
	if m.session == nil {
		return
	}
	s := m.session
	m.session = nil
	w.leaveGroup(m)
	w.stats.members.Add(-1)
	w.contain("the end of a stream", func() {
		for _, e := range s.End(w.differ) {
			w.shards.opts.Metrics.Healed(w.shards.offencesOf(e.Offences))
		}
	})
}

// leaveGroup takes a client out of its class group, and the class group away if it was the last.
func (w *worker) leaveGroup(m *client) {
	if m.group == nil {
		return
	}
	w.leaveCohort(m)
	c := m.group
	m.group = nil
	delete(c.members, m)
	if len(c.members) == 0 {
		delete(w.groups, c)
		delete(w.byClass, c.class)
		w.joins.release(c.desired.endpoints)
		w.stats.classes.Add(-1)
		w.parted = true
	}
}

func (w *worker) leaveCohort(m *client) {
	if m.cohort == nil {
		return
	}
	delete(m.cohort.members, m)
	if len(m.cohort.members) == 0 {
		delete(m.group.cohorts, m.cohort.sub)
		w.subscribers.remove(m.cohort)
		w.stats.cohorts.Add(-1)
	}
	m.cohort = nil
}

// muster puts a client into the Cohort of its subscription.
func (w *worker) muster(m *client) {
	if m.group == nil {
		return
	}
	sub := w.liveSubscription(m)
	if m.cohort != nil && m.cohort.sub == sub {
		return
	}
	w.leaveCohort(m)
	c := m.group.cohorts[sub]
	if c == nil {
		c = &cohort{sub: sub, members: map[*client]struct{}{}}
		m.group.cohorts[sub] = c
		w.subscribers.add(c)
		w.stats.cohorts.Add(1)
	}
	c.members[m] = struct{}{}
	m.cohort = c
}

// handleResourceSet brings the class group of a class to a new ResourceSet. at is when it came.
func (w *worker) handleResourceSet(class *classes.Class, set *classes.ResourceSet, at time.Time) {
	c := w.byClass[class]
	if c == nil || set.Revision < c.desired.set.Revision || set == c.desired.set {
		return
	}
	if !w.contain("the desired of a class", func() { w.setDesired(c, set) }) {
		return // the group stays at what it had
	}
	for _, group := range c.cohorts {
		for m := range group.members {
			w.guard(m, "a new ResourceSet", func() { w.carryOut(m, m.session.SetDesired(w.now(), w.differ, c.desired), at) })
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
			w.send(m, e, at)
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
			metrics.Converged(w.sinceChange(at))
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

// What a client is sent of answers for types that are not served, in bytes of names.
const (
	// maxUnserved bounds one answer to a client that has read all that it was sent.
	maxUnserved = 64 << 10
	// maxBesides bounds those that a client has been sent and may not have read. A single one may be larger.
	maxBesides = 8 << 10
)

// send sends a response, unless admitsUnserved holds it back.
func (w *worker) send(m *client, e ads.Effect, at time.Time) {
	_, served := w.shards.opts.Types.Of(e.TypeURL)
	if !served && !m.admitsUnserved(e.Batch) {
		return
	}
	r := w.response(e.Batch)
	m.stream.Send(e.TypeURL, r)
	w.stats.sent.Add(1)
	w.given += r.Len()
	if served {
		w.shards.opts.Metrics.Sent(e.Type, r.Len(), w.sinceChange(at))
	}
}

// admitsUnserved reports whether a client may be sent an answer for a type that is not served. Such answers wait for no
// ACK, so they have bounds, and what is beyond them is lost. It is decided before the answer is assembled: what is lost
// costs nothing.
func (m *client) admitsUnserved(b *ads.Batch) bool {
	size := len(b.TypeURL)
	for _, name := range b.Removed {
		size += len(name)
	}
	switch {
	case size > maxUnserved:
		return false
	case !m.backlogged():
		m.besides = size
	case m.besides+size > maxBesides:
		return false
	default:
		m.besides += size
	}
	return true
}

func (w *worker) sinceChange(at time.Time) time.Duration {
	if at.IsZero() {
		return -1
	}
	return w.now().Sub(at)
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

// response returns the assembled form of a Batch. Clients that are sent the same Batch in a round share it.
func (w *worker) response(b *ads.Batch) *encodecache.Response {
	r, ok := w.responses[b]
	if !ok {
		a, h := w.shards.opts.Assembler, encodecache.Header{TypeURL: b.TypeURL, Version: b.Version, Nonce: b.Nonce}
		switch {
		case b.Section.Len() > 0 && b.Delta:
			r = a.DeltaBlocks(h, w.blocksOf(b), b.Removed)
		case b.Section.Len() > 0:
			r = a.SotWBlocks(h, w.blocksOf(b))
		case b.Delta:
			r = a.Delta(h, b.Entries, b.Removed)
		default:
			r = a.SotW(h, b.Entries)
		}
		w.responses[b] = r
		w.stats.assembled.Add(1)
	} else if j := r.Joined(); j != r {
		w.responses[b], r = j, j
	}
	return r
}

// liveSubscription returns what a client subscribes to of the type that is made from endpoints.
func (w *worker) liveSubscription(m *client) ads.Subscription {
	typ := w.shards.opts.Types.FromEndpoints()
	if typ == xdstype.None {
		return ads.Subscription{}
	}
	return m.session.Subscription(typ)
}
