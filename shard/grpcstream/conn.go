package grpcstream

import (
	"context"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// connCredentials remembers the connection that a stream came over, so that it can be closed under a client that does not read: grpc
// keeps what such a client was sent until its connection ends. The connection itself is handed on as it is: wrapped, it would lose grpc's
// pooled reads.
type connCredentials struct {
	credentials.TransportCredentials
}

// ServerHandshake is the inner one's, with the connection put beside what it says about the client.
func (c connCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	return conn, ConnInfo{AuthInfo: info, conn: raw}, nil
}

// Clone copies the credentials.
func (c connCredentials) Clone() credentials.TransportCredentials {
	return connCredentials{c.TransportCredentials.Clone()}
}

// ConnInfo is the peer.AuthInfo of streams of this server.
type ConnInfo struct {
	// AuthInfo is what the transport credentials say about the client, for TLS a credentials.TLSInfo.
	credentials.AuthInfo
	conn net.Conn
}

// GetCommonAuthInfo is the inner one's, which grpc asks for the security level.
func (c ConnInfo) GetCommonAuthInfo() credentials.CommonAuthInfo {
	if i, ok := c.AuthInfo.(interface {
		GetCommonAuthInfo() credentials.CommonAuthInfo
	}); ok {
		return i.GetCommonAuthInfo()
	}
	return credentials.CommonAuthInfo{}
}

// PeerInfo is what the transport credentials of a server of this package say about the client of ctx; nil if there are none.
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
	if p, ok := peer.FromContext(s.grpc.Context()); ok {
		if c, ok := p.AuthInfo.(ConnInfo); ok {
			c.conn.Close()
		}
	}
}
