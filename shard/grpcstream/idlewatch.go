package grpcstream

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// idleWatch looks at all streams now and then, while there are any, and cuts off clients that do not read: those for
// which a whole Stuck limit passes in which not one response is written, though some wait; and when more bytes wait for
// all clients than HeldInAll allows, those that have read nothing since the last look, the longest first. So it does
// with clients that leave a request undone for RequestTime.
type idleWatch struct {
	// Immutable after newIdleWatch.
	server *Server
	every  time.Duration // zero for never

	mu sync.Mutex
	// Guarded by mu.
	walking bool
}

// pace is the longest time between two looks.
const pace = 5 * time.Second

func newIdleWatch(s *Server) *idleWatch {
	p := &idleWatch{server: s}
	o := &s.options
	if o.AfterFunc == nil || o.Stuck <= 0 && s.limits.HeldInAll <= 0 && o.RequestTime <= 0 {
		return p
	}
	p.every = pace
	for _, limit := range []time.Duration{o.Stuck, o.RequestTime} {
		if limit > 0 {
			p.every = min(p.every, limit/4)
		}
	}
	return p
}

// begin sees to it that a look is taken; it is called for each stream that opens.
func (p *idleWatch) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.walking && p.every > 0 {
		p.walking = true
		p.server.options.AfterFunc(p.every, p.inspect)
	}
}

// readProgress is what the idleWatch knows of a stream. Owned by it.
type readProgress struct {
	mark  uint64 // one more than the stream's progress when last looked at; zero when it owed nothing
	still int    // looks since it has progressed
	due   uint64 // the stream's awaited when last looked at, if that is odd
	late  int    // looks since it has that
}

// look is called by the timer.
func (p *idleWatch) inspect() {
	defer p.rest()
	var idle []*stream
	all := 0
	p.server.streams.Range(func(_ uint64, s *stream) bool {
		owed := int(s.owed.Load())
		all += owed
		if g := &s.readProgress; g.see(owed, s.progress.Load()) {
			idle = append(idle, s)
		}
		p.checkRequest(s)
		return true
	})
	p.cutOff(idle, all)
}

// rest ends a look, also one that panicked, and sees to the next one.
func (p *idleWatch) rest() {
	if v := recover(); v != nil {
		p.server.panicked("looking for clients that do not read", v)
	}
	p.mu.Lock()
	p.walking = false
	p.mu.Unlock()
	if p.server.Streams() > 0 {
		p.begin()
	}
}

// see reports whether the stream has owed something since the last look and made no progress.
func (g *readProgress) see(owed int, progress uint64) bool {
	switch {
	case owed <= 0:
		g.mark, g.still = 0, 0
	case g.mark != progress+1:
		g.mark, g.still = progress+1, 0
	default:
		g.still++
	}
	return g.still > 0
}

// checkRequest ends a stream of which a request is due for too long: RequestTime, or a look's time while others wait
// for the place that it has.
func (p *idleWatch) checkRequest(s *stream) {
	g, awaited, limit := &s.readProgress, s.awaited.Load(), p.server.options.RequestTime
	switch {
	case limit <= 0 || awaited%2 == 0:
		g.due, g.late = 0, 0
	case g.due != awaited:
		g.due, g.late = awaited, 0
	default:
		g.late++
		if s.receiving.Load() && p.server.reception.waits.Load() > 0 {
			limit = min(limit, p.every) // others need its place
		}
		if time.Duration(g.late)*p.every >= limit {
			s.Close(&refusal{ReasonDeadline, status.Newf(codes.DeadlineExceeded, "no complete request has come for %v",
				limit)})
		}
	}
}

// cutOff ends idle streams that are stuck, and others while too many bytes of all streams wait.
func (p *idleWatch) cutOff(idle []*stream, all int) {
	s := p.server
	slices.SortFunc(idle, func(a, b *stream) int {
		return cmp.Or(cmp.Compare(b.readProgress.still, a.readProgress.still), cmp.Compare(a.id, b.id))
	})
	for _, st := range idle {
		stuck := s.options.Stuck > 0 && time.Duration(st.readProgress.still)*p.every >= s.options.Stuck
		over := s.limits.HeldInAll > 0 && all > s.limits.HeldInAll
		switch {
		case stuck:
			s.stats.stuck.Add(1)
			st.Close(status.Errorf(codes.DeadlineExceeded, "the client has not read a response for %v",
				s.options.Stuck))
		case over:
			s.stats.shed.Add(1)
			st.Close(s.limits.heldInAll(all))
		default:
			continue
		}
		all -= int(st.owed.Load())
		st.disconnect()
	}
}
