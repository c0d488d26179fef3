package grpcstream

import (
	"context"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// connCredentials remembers the connection that a stream came over, so that it can be closed under a client that does
// not read: grpc keeps what such a client was sent until its connection ends. The connection itself is handed on as it
// is: wrapped, it would lose grpc's pooled reads.
type connCredentials struct {
	credentials.TransportCredentials
	idle *idleConnections // nil for no bound
}

// ServerHandshake returns the inner one's, with the connection put beside what it says about the client.
func (c connCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	here := &connection{conn: raw}
	c.idle.add(here)
	return conn, ConnInfo{AuthInfo: info, connection: here}, nil
}

// Clone copies the credentials.
func (c connCredentials) Clone() credentials.TransportCredentials {
	return connCredentials{c.TransportCredentials.Clone(), c.idle}
}

// ConnInfo is the peer.AuthInfo of streams of this server.
type ConnInfo struct {
	// AuthInfo is what the transport credentials say about the client, for TLS a credentials.TLSInfo.
	credentials.AuthInfo
	*connection
}

// connection is what streams come over.
type connection struct {
	// Immutable.
	conn net.Conn

	streams atomic.Int32 // how many are open
	parting atomic.Bool  // it ends, and takes no more streams
}

// connectionOf returns the connection of a stream's context; nil if it came over none that this server accepted.
func connectionOf(ctx context.Context) *connection {
	if p, ok := peer.FromContext(ctx); ok {
		if c, ok := p.AuthInfo.(ConnInfo); ok {
			return c.connection
		}
	}
	return nil
}

// arrives counts a stream of the connection. With the first one the connection is idle no longer.
func (s *Server) arrives(c *connection) error {
	if c == nil {
		return nil
	}
	if c.streams.Add(1) == 1 {
		s.idle.remove(c)
		if n := s.connections.Add(1); s.limits.Connections > 0 && n > int64(s.limits.Connections) {
			return s.limits.connections(int(n))
		}
	}
	if c.parting.Load() {
		return errElsewhere()
	}
	return nil
}

// departs undoes arrives.
func (s *Server) departs(c *connection) {
	if c != nil && c.streams.Add(-1) == 0 {
		s.connections.Add(-1)
		s.idle.add(c)
	}
}

// Use notes that a call of another service uses the connection of ctx until end is called: it counts as one with
// streams, and is not closed for having none.
func (s *Server) Use(ctx context.Context) (end func(), err error) {
	c := connectionOf(ctx)
	if err := s.arrives(c); err != nil {
		s.departs(c)
		return nil, err
	}
	return func() { s.departs(c) }, nil
}

// GetCommonAuthInfo returns the inner one's, which grpc asks for the security level.
func (c ConnInfo) GetCommonAuthInfo() credentials.CommonAuthInfo {
	if i, ok := c.AuthInfo.(interface {
		GetCommonAuthInfo() credentials.CommonAuthInfo
	}); ok {
		return i.GetCommonAuthInfo()
	}
	return credentials.CommonAuthInfo{}
}

// PeerInfo returns what the transport credentials of a server of this package say about the client of ctx; nil if there
// are none.
func PeerInfo(ctx context.Context) credentials.AuthInfo {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	if c, ok := p.AuthInfo.(ConnInfo); ok {
		return c.AuthInfo
	}
	return p.AuthInfo
}

// disconnect closes the connection that the stream came over.
func (s *stream) disconnect() {
	if c := connectionOf(s.grpc.Context()); c != nil {
		c.conn.Close()
	}
}
