package handshake

import (
	"context"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/credentials"

	"github.com/pilotd/pilotd/identity/quota"
)

// arrival is a connection, from when it is accepted. During its handshake it has a turn to compute whenever it does not
// read or write; afterwards it is just a connection.
type arrival struct {
	// Immutable after put.
	net.Conn
	door *Door
	from quota.Caller

	// shaking is set while its handshake is under way; changed under the Door's mu. The one goroutine that shakes hands
	// reads it too, and whoever uses the connection later.
	shaking atomic.Bool
	// idle is set while the handshake waits for its client.
	idle atomic.Bool
	// late counts the looks that found it idle. Guarded by the Door's mu.
	late int
}

// Read reads, without a turn while it waits.
func (a *arrival) Read(b []byte) (int, error) {
	if !a.shaking.Load() {
		return a.Conn.Read(b)
	}
	a.rest()
	defer a.resume()
	return a.Conn.Read(b)
}

// Write writes, without a turn: a client may leave no room for that.
func (a *arrival) Write(b []byte) (int, error) {
	if !a.shaking.Load() {
		return a.Conn.Write(b)
	}
	a.rest()
	defer a.resume()
	return a.Conn.Write(b)
}

// Close closes the connection; its handshake is over.
func (a *arrival) Close() error {
	a.door.end(a, false)
	return a.Conn.Close()
}

// rest gives the turn back.
func (a *arrival) rest() {
	a.idle.Store(true)
	a.door.turns.Done()
}

// resume waits for a turn. Those who have one keep it for a millisecond or two, whatever clients do.
func (a *arrival) resume() {
	a.idle.Store(false)
	_ = a.door.turns.Wait(context.Background(), a.from)
}

// Credentials returns c for a server that accepts from the Door.
func (d *Door) Credentials(c credentials.TransportCredentials) credentials.TransportCredentials {
	return shaker{c, d}
}

// shaker are transport credentials whose handshakes take turns.
type shaker struct {
	credentials.TransportCredentials
	door *Door
}

// ServerHandshake returns the inner one's, which computes in turns.
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
