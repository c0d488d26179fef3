package shard

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard/admission"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/xdstype"
)

// Client is what debug pages say about one stream.
type Client struct {
	ID    uint64
	Proxy *proxy.Proxy
	// Class is the name of the proxy's class, Shard where it is.
	Class string
	Shard int
	// Revision is that of the Snapshot that the client is brought to.
	Revision uint64
	Types    map[xdstype.Type]TypeStatus
}

// TypeStatus is what debug pages say about one type of a stream.
type TypeStatus struct {
	ads.Status
	// Entries are the resources that the client was sent and has not been told to drop, by name. Only Client fills it.
	Entries []*encodecache.Entry
}

// Clients describes all streams that have a shard, without Entries, in the order of their proxies' ids.
func (s *Shards) Clients() []Client { return s.inspect(func(*client) bool { return true }, false) }

// Find describes the streams of one proxy, which is named by its id or by "name.namespace", with Entries: what was
// really sent.
func (s *Shards) Find(proxyID string) []Client {
	return s.inspect(func(m *client) bool {
		return m.proxy.ID == proxyID || m.proxy.Name+"."+m.proxy.Namespace == proxyID
	}, true)
}

// Waiting is a proxy that has connected and waits for an answer.
type Waiting struct {
	Proxy *proxy.Proxy
	// Priority is how much it needs its answer, Planned whether the planner has told what it should have, and Since when
	// it connected.
	Priority admission.Priority
	Planned  bool
	Since    time.Time
	turn     admission.Turn
}

// Waiting describes all proxies that wait for an answer, the one that is next first.
func (s *Shards) Waiting() []Waiting {
	var mu sync.Mutex
	var out []Waiting
	for _, p := range s.gate.Waiting() {
		m := p.Client.(*client)
		out = append(out, Waiting{Proxy: m.proxy, Priority: p.Priority, Since: m.came, turn: p.Turn})
	}
	complete := s.each(func(w *worker) {
		mu.Lock()
		defer mu.Unlock()
		for p := range w.entrance.line.All() {
			out = append(out, Waiting{Proxy: p.Client.proxy, Priority: p.Priority, Planned: true, Since: p.Client.came,
				turn: p.Turn})
		}
	})
	if !complete {
		return nil
	}
	for i := range out {
		out[i].Since = s.clock.wall(out[i].Since)
	}
	slices.SortFunc(out, func(a, b Waiting) int {
		if a.turn.Before(b.turn) {
			return -1
		}
		return 1
	})
	return out
}

// Underway returns the bytes of answers to proxies that connect that they have not shown to have read, and how many
// there may be before others wait.
func (s *Shards) Underway() (bytes, limit int) { return s.budget.Underway() }

// each calls f on every worker's goroutine, and reports whether all have returned from it.
func (s *Shards) each(f func(*worker)) bool {
	done := make(chan struct{}, len(s.workers))
	for _, w := range s.workers {
		w.slots.postQuery(func() {
			defer func() { done <- struct{}{} }()
			s.opts.contain("a query", func() { f(w) })
		})
	}
	for range s.workers {
		select {
		case <-done:
		case <-s.stopped:
			return false
		}
	}
	return true
}

// inspect collects descriptions of members from every worker.
func (s *Shards) inspect(want func(*client) bool, entries bool) []Client {
	var mu sync.Mutex
	var out []Client
	complete := s.each(func(w *worker) {
		some := w.tell(want, entries)
		mu.Lock()
		defer mu.Unlock()
		out = append(out, some...)
	})
	if !complete {
		return nil
	}
	slices.SortFunc(out, func(a, b Client) int {
		if c := strings.Compare(a.Proxy.ID, b.Proxy.ID); c != 0 {
			return c
		}
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return out
}

// tell describes a member. It runs on the worker goroutine.
func (w *worker) tell(want func(*client) bool, entries bool) []Client {
	var out []Client
	for c := range w.roster.groups {
		for m := range c.members {
			if !want(m) {
				continue
			}
			cl := Client{
				ID: m.id, Proxy: m.proxy, Class: c.class.Name, Shard: w.index,
				Revision: c.desired.set.Revision, Types: map[xdstype.Type]TypeStatus{},
			}
			for i := range w.shards.opts.Types.Rows() {
				t := xdstype.Type(i)
				st := TypeStatus{Status: w.shards.clock.told(m.session.Status(t))}
				if !st.Watched {
					continue
				}
				if entries && t != w.shards.opts.Types.FromIdentity() {
					st.Entries = slices.Collect(m.session.Has(w.differ, t))
				}
				cl.Types[t] = st
			}
			out = append(out, cl)
		}
	}
	return out
}
