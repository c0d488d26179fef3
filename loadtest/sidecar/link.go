package sidecar

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pilotd/pilotd/loadtest/wire"
)

// Parting is a way to leave.
type Parting int

// The ways to leave: close in order; reset the connection; disappear, with the connection left open.
const (
	Orderly Parting = iota
	Abrupt
	Silent
)

// plan says what follows the end of a connection.
type plan int

const (
	later plan = iota // reconnect after the back-off
	soon              // reconnect at once
	stay              // stay away until Return
)

// link is one connection, and the members whose streams it carries.
type link struct {
	// Immutable after Start.
	fleet   *Fleet
	members []*member

	mu sync.Mutex
	// Guarded by mu.
	conn    net.Conn // nil while there is none
	streams *wire.Conn
	left    []net.Conn // connections that were left open
	then    plan
	wake    chan struct{} // closed when the condition of a waiting link may have changed
	hung    bool          // the connection is being closed
	stalled bool
	rate    int // bytes a second; 0 is unlimited

	// gated says that the link is stalled or slow, so that reads must call gate.
	gated atomic.Bool

	// target is the index of the present server, modulo their number. The goroutine of run advances it.
	target atomic.Int64

	// Owned by the goroutine of run.
	backoff backoff
	due     time.Time // when a slow reader may read again
}

// run opens one connection after the other, until the link is closed.
func (l *link) run() {
	for l.fleet.ctx.Err() == nil {
		err := l.session()
		l.mu.Lock()
		then := l.then
		l.conn, l.streams = nil, nil
		l.mu.Unlock()
		for _, m := range l.members {
			m.end()
		}
		if l.fleet.ctx.Err() != nil {
			return
		}
		switch then {
		case later:
			l.failed(err)
		case stay:
			l.await(func() bool { return l.then != stay })
		}
	}
}

// failed reports a failure and waits for the back-off. The next attempt goes to the next server.
func (l *link) failed(err error) {
	if ended := l.fleet.options.Ended; ended != nil {
		for _, m := range l.members {
			ended(m.index, err)
		}
	}
	l.target.Add(1)
	var over atomic.Bool
	timer := time.AfterFunc(l.backoff.next(l.members[0].kind(), rand.Float64()), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		over.Store(true)
		l.changed()
	})
	defer timer.Stop()
	l.await(func() bool { return over.Load() || l.then != later })
}

// await waits until ready returns true. It calls ready with mu held whenever something has changed.
func (l *link) await(ready func() bool) {
	for {
		l.mu.Lock()
		ok, wake := ready(), l.wake
		l.mu.Unlock()
		if ok || l.fleet.ctx.Err() != nil {
			return
		}
		select {
		case <-wake:
		case <-l.fleet.ctx.Done():
			return
		}
	}
}

// changed wakes those that await. The caller holds mu.
func (l *link) changed() {
	l.gated.Store(l.stalled || l.rate > 0)
	close(l.wake)
	l.wake = make(chan struct{})
}

// session runs one connection from its beginning to its end.
func (l *link) session() error {
	conn, header, err := l.dial()
	if err != nil {
		return err
	}
	streams := wire.NewConn(conn, header, l.fleet.buffers)
	if err := l.enter(conn, streams); err != nil {
		conn.Close()
		return err
	}
	for _, m := range l.members {
		if err := m.open(streams); err != nil {
			conn.Close()
			return err
		}
	}
	err = streams.Run()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == conn { // unless the connection was left open
		conn.Close()
	}
	return err
}

// current returns the present connection.
func (l *link) current() (io.Closer, *wire.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn, l.streams
}

// enter makes conn the link's connection.
func (l *link) enter(conn net.Conn, streams *wire.Conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.fleet.ctx.Err(); err != nil {
		return err
	}
	if l.then == stay {
		return errors.New("it left while it connected")
	}
	l.conn, l.streams, l.then, l.hung = conn, streams, later, false
	return nil
}

func (l *link) dial() (net.Conn, wire.Header, error) {
	ctx := l.fleet.ctx
	if d := l.fleet.dialing; d != nil {
		select {
		case d <- struct{}{}:
			defer func() { <-d }()
		case <-ctx.Done():
			return nil, wire.Header{}, ctx.Err()
		}
	}
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	return l.fleet.options.Dial(ctx, int(l.target.Load())%l.fleet.options.Targets, l.members[0].index)
}

// dialPatience bounds connecting. A server to which thousands connect at once may be slow to accept.
const dialPatience = 20 * time.Second

// hangUp ends the connection.
func (l *link) hangUp(how Parting, then plan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.then, l.hung = then, true
	defer l.changed()
	if l.conn == nil {
		return
	}
	switch how {
	case Orderly:
		l.conn.Close()
	case Abrupt:
		wire.Abort(l.conn)
	case Silent:
		l.left = append(l.left, l.conn)
		_ = l.conn.SetDeadline(time.Unix(1, 0))
		l.conn = nil
	}
}

func (l *link) comeBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.then == stay {
		l.then = later
	}
	l.changed()
}

// close ends the link for good.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		l.conn.Close()
	}
	for _, c := range l.left {
		c.Close()
	}
	l.left = nil
}

func (l *link) setStalled(stalled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stalled = stalled
	l.changed()
}

// slowBuffer is the receive buffer of a connection that reads slowly. With the usual size the kernel would read ahead.
const slowBuffer = 16 << 10

func (l *link) setRate(rate int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rate = rate
	if b, ok := l.conn.(interface{ SetReadBuffer(int) error }); ok && rate > 0 {
		_ = b.SetReadBuffer(slowBuffer)
	}
	l.changed()
}

// gate delays reading n bytes: while the link is stalled, and for a slow link by its rate.
func (l *link) gate(n int) {
	if !l.gated.Load() {
		return
	}
	rate := 0
	l.await(func() bool {
		rate = l.rate
		return !l.stalled || l.hung
	})
	if rate <= 0 {
		return
	}
	now := time.Now()
	if l.due.Before(now) {
		l.due = now
	}
	l.due = l.due.Add(time.Duration(float64(n) / float64(rate) * float64(time.Second)))
	timer := time.NewTimer(l.due.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.fleet.ctx.Done():
	}
}
