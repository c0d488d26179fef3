package sidecar

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pilotd/pilotd/loadtest/wire"
)

// member is one client of a Fleet.
type member struct {
	// Immutable.
	link  *link
	index int

	mu sync.Mutex
	// Guarded by mu.
	client  *Client
	session *session // nil while there is no stream
	retry   *time.Timer
	backoff backoff
}

// session is one stream of a member. It handles the stream's events.
type session struct {
	member *member

	// Guarded by the member's mu.
	stream *wire.Stream

	// Owned by the goroutine that runs the connection.
	parser parser
}

func (m *member) kind() Kind {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.client.spec.Kind
}

// open opens a stream on a connection.
func (m *member) open(conn *wire.Conn) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.openLocked(conn)
}

// openLocked is open for callers that hold mu.
func (m *member) openLocked(conn *wire.Conn) error {
	s := &session{member: m, parser: parser{table: m.link.fleet.table, form: m.client.form()}}
	stream, err := conn.Open(m.client.spec.Delta, s)
	if err != nil {
		return err
	}
	s.stream, m.session = stream, s
	m.link.fleet.streams.Add(1)
	s.send(m.client.Begin())
	return nil
}

// send queues requests. The caller holds mu.
func (s *session) send(requests []Request) {
	for i := range requests {
		s.stream.Send(requests[i].Parts())
	}
}

// end forgets the stream after the end of its connection.
func (m *member) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget()
}

// forget is end for callers that hold mu.
func (m *member) forget() {
	if m.session != nil {
		m.session = nil
		m.link.fleet.streams.Add(-1)
	}
	if m.retry != nil {
		m.retry.Stop()
		m.retry = nil
	}
}

// Data receives bytes of responses, and answers the responses that are complete.
func (s *session) Data(b []byte) error {
	m := s.member
	m.link.gate(len(b))
	if raw := m.link.fleet.options.Raw; raw != nil {
		raw(m.index, b)
	}
	for len(b) > 0 {
		rest, complete, err := s.parser.feed(b)
		if err != nil {
			return err
		}
		if b = rest; complete {
			s.take()
		}
	}
	return nil
}

// take passes the complete response to the client.
func (s *session) take() {
	m := s.member
	defer s.parser.reset()
	m.link.backoff.failures = 0
	m.mu.Lock()
	if m.session != s {
		m.mu.Unlock()
		return
	}
	m.backoff.failures = 0
	receipt, requests := m.client.Take(&s.parser.response)
	s.send(requests)
	m.mu.Unlock()
	m.link.fleet.received(m.index, &receipt)
}

// Ended handles the end of the stream alone: another one follows on the same connection, after the back-off.
func (s *session) Ended(err error) {
	m := s.member
	m.mu.Lock()
	current := m.session == s
	if current {
		m.forget()
		m.again(m.backoff.next(m.client.spec.Kind, rand.Float64()))
	}
	m.mu.Unlock()
	if ended := m.link.fleet.options.Ended; current && ended != nil {
		ended(m.index, err)
	}
}

// again opens another stream after a while, on the connection that exists then. The caller holds mu.
func (m *member) again(after time.Duration) {
	var timer *time.Timer
	timer = time.AfterFunc(after, func() {
		conn, streams := m.link.current()
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.retry != timer || streams == nil {
			return // the connection has ended: all streams open with the next one
		}
		m.retry = nil
		if m.openLocked(streams) != nil || streams.Flush() != nil {
			conn.Close()
		}
	})
	m.retry = timer
}

// replace makes the member another client. A member with a connection of its own leaves it as a killed pod does.
func (m *member) replace(s Spec) {
	m.mu.Lock()
	m.client = NewClient(m.link.fleet.table, s)
	alone := len(m.link.members) == 1
	if m.session != nil && !alone {
		m.session.stream.Reset()
	}
	m.forget()
	if !alone {
		m.again(0)
	}
	m.mu.Unlock()
	if alone {
		m.link.hangUp(Abrupt, soon)
	}
}
