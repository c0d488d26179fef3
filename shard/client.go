package shard

import (
	"sync"
	"time"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/prioqueue"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard/admission"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/xdstype"
)

// client is one stream and its proxy.
type client struct {
	// Immutable after newClient.
	id     uint64
	stream Stream
	source Planner
	proxy  *proxy.Proxy
	room   chan struct{}   // holds a token while a request is undecided
	done   <-chan struct{} // closed when the stream has ended; nil if the stream has no such channel
	came   time.Time

	// Owned by the Shards' gate and budget.
	gate admission.AtGate
	debt admission.Debt

	// Guarded by the Shards' mu.
	class  *classes.Class
	worker *worker
	left   bool

	mu sync.Mutex
	// Guarded by mu.
	mail   mail
	home   *worker // nil until placed
	posted bool    // the home's inbox has it

	// Owned by the worker goroutine; nil until the first ResourceSet.
	gone     bool
	session  *ads.Session
	entered  bool                       // its first request has been answered
	doubted  bool                       // the Session does not believe its versions
	priority admission.Priority         // when it came
	waiter   *admission.Waiter[*client] // in the worker's line of those that connect; nil when not
	first    *ads.Request               // a type's first, while the client waits there
	group    *classGroup
	cohort   *cohort
	personal bool           // it asks for secrets, which it gets by who it has proven to be
	audience *audience      // nil while it asks for none
	lapsed   *ads.Resources // what it gets since the proof has ended; nil before
	since    time.Time      // of the oldest change that has not all been sent
	due      time.Time      // when the timer is set for
	limit    time.Time      // when its Debt ends in any case; zero for never
	timer    prioqueue.Position
	besides  int // bytes of answers for types that are not served, since all that was sent had left the process
}

// mail is what has come for a client and the worker has not taken yet: of each sort the newest.
type mail struct {
	request  *ads.Request
	assigned *assignment
	gone     bool
}

// assignment is the class and ResourceSet of a proxy.
type assignment struct {
	class *classes.Class
	set   *classes.ResourceSet
	doubt xdstype.Set
}

func newClient(st Stream, p *proxy.Proxy, first ads.Request, now time.Time) *client {
	m := &client{id: st.ID(), stream: st, proxy: p, room: make(chan struct{}, 1), came: now}
	if e, ok := st.(Ended); ok {
		m.done = e.Done()
	}
	m.room <- struct{}{}
	m.mail.request = &first
	return m
}

// Attach asks the planner for the client's class; with Detach and AtGate it implements admission.Client.
func (m *client) Attach() { m.source.Attach(m.id, m.proxy) }

// Detach tells the planner that the client has left.
func (m *client) Detach() { m.source.Detach(m.id) }

// want tells the planner that the client has asked for a type that is planned on demand.
func (m *client) want(t xdstype.Type) {
	if d, ok := m.source.(Demand); ok {
		d.Want(m.id, t)
	}
}

// AtGate returns what the gate keeps of the client.
func (m *client) AtGate() *admission.AtGate { return &m.gate }

// backlogged reports whether something that was sent has not left the process.
func (m *client) backlogged() bool {
	b, ok := m.stream.(Backlogged)
	return ok && b.Backlogged()
}

// post adds to the mail that waits for the worker, and wakes the worker. It never blocks.
func (m *client) post(leave func(*mail)) { m.postTo(nil, leave) }

// postTo is post for a client that may have no worker yet: then home is its worker from now on.
func (m *client) postTo(home *worker, leave func(*mail)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	leave(&m.mail)
	if m.home == nil {
		m.home = home
	}
	if m.home != nil && !m.posted {
		m.posted = true
		m.home.slots.postClient(m)
	}
}

// collect takes the mail. The worker calls it.
func (m *client) collect() mail {
	m.mu.Lock()
	defer m.mu.Unlock()
	in := m.mail
	m.mail, m.posted = mail{}, false
	return in
}
