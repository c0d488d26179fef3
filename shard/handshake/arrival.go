package handshake

import (
	"context"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/credentials"

	"github.com/pilotd/pilotd/identity/quota"
)

// arrival is an accepted connection. During its handshake it holds a turn while it computes, and releases it while it
// reads or writes; after the handshake it behaves like any connection.
type arrival struct {
	// Immutable after put.
	net.Conn
	door *Door
	from quota.Caller

	// shaking is true during the handshake. It changes under the Door's mu; the goroutine of the handshake and later
	// users of the connection read it without.
	shaking atomic.Bool
	// idle is true while the handshake waits for its client.
	idle atomic.Bool
	// late counts the checks that found it idle. Guarded by the Door's mu.
	late int
}

// Read reads, and releases the turn while it waits.
func (a *arrival) Read(b []byte) (int, error) {
	if !a.shaking.Load() {
		return a.Conn.Read(b)
	}
	a.rest()
	defer a.resume()
	return a.Conn.Read(b)
}

// Write writes, and releases the turn because a client that does not read can block it.
func (a *arrival) Write(b []byte) (int, error) {
	if !a.shaking.Load() {
		return a.Conn.Write(b)
	}
	a.rest()
	defer a.resume()
	return a.Conn.Write(b)
}

// Close closes the connection, which ends its handshake.
func (a *arrival) Close() error {
	a.door.end(a, false)
	return a.Conn.Close()
}

// rest releases the turn.
func (a *arrival) rest() {
	a.idle.Store(true)
	a.door.turns.Done()
}

// resume waits for a turn. A turn lasts a millisecond or two, whatever clients do, because it is released for all I/O.
func (a *arrival) resume() {
	a.idle.Store(false)
	_ = a.door.turns.Wait(context.Background(), a.from)
}

// Credentials wraps c for a server that accepts connections from the Door.
func (d *Door) Credentials(c credentials.TransportCredentials) credentials.TransportCredentials {
	return shaker{c, d}
}

// shaker are transport credentials whose handshakes compute in turns.
type shaker struct {
	credentials.TransportCredentials
	door *Door
}

// ServerHandshake runs the wrapped handshake, in turns.
func (s shaker) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	a, ok := raw.(*arrival)
	if !ok {
		return s.TransportCredentials.ServerHandshake(raw)
	}
	a.resume()
	conn, info, err := s.TransportCredentials.ServerHandshake(raw)
	s.door.turns.Done()
	s.door.end(a, err == nil)
	return conn, info, err
}

// Clone copies the credentials.
func (s shaker) Clone() credentials.TransportCredentials {
	return shaker{s.TransportCredentials.Clone(), s.door}
}
