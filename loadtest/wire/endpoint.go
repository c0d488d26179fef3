package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
)

// Endpoint is the address of a server and how to connect to it. Immutable once it is in use.
type Endpoint struct {
	Network, Address string
	// Authority is the host name in the streams' headers; empty means the address's host.
	Authority string
	// TLS is nil for plain text.
	TLS *tls.Config
	// TokenFile has the bearer token. It is read for every connection, because tokens are renewed. {namespace} and
	// {account} in its name stand for those of the client. Empty means no token.
	TokenFile string
	// Issuer provides a certificate for each client; nil for none.
	Issuer *Issuer
	// ReceiveBuffer is the size in bytes of a socket's receive buffer; 0 leaves it to the kernel, whose choice can
	// exceed its memory when there are thousands of connections. On loopback less than 256 KiB, which is four packets
	// there, is slow.
	ReceiveBuffer int
}

// Secrets are the files and names of a TLS connection.
type Secrets struct {
	// CA is a file with the roots that verify the server; empty means the system's.
	CA string
	// Cert and Key are the files of the client's certificate.
	Cert, Key string
	// ServerName is the name that the server's certificate must have, and the SNI; empty means the target's host.
	ServerName string
	// Insecure skips verification of the server's certificate.
	Insecure bool
}

// At returns the plain-text endpoint of a target: host:port, or unix:PATH.
func At(target string) Endpoint {
	if path, ok := strings.CutPrefix(target, "unix:"); ok {
		if p, ok := strings.CutPrefix(path, "//"); ok {
			path = p
		}
		return Endpoint{Network: "unix", Address: path, Authority: "localhost"}
	}
	return Endpoint{Network: "tcp", Address: target, Authority: target}
}

// Secure returns a copy of the endpoint that uses TLS.
func (e Endpoint) Secure(s Secrets) (Endpoint, error) {
	// asked for
	config := &tls.Config{ServerName: s.ServerName, InsecureSkipVerify: s.Insecure, NextProtos: []string{"h2"},
		MinVersion: tls.VersionTLS12} //nolint:gosec
	if host, _, err := net.SplitHostPort(e.Address); err == nil && config.ServerName == "" {
		config.ServerName = host
	}
	if s.CA != "" {
		text, err := os.ReadFile(s.CA)
		if err != nil {
			return e, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return e, fmt.Errorf("%s holds no certificate", s.CA)
		}
	}
	if (s.Cert == "") != (s.Key == "") {
		return e, errors.New("a client certificate needs its key, and a key its certificate")
	}
	if s.Cert != "" {
		pair, err := tls.LoadX509KeyPair(s.Cert, s.Key)
		if err != nil {
			return e, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	e.TLS = config
	return e, nil
}

// Dial connects a client that runs as this account.
func (e *Endpoint) Dial(ctx context.Context, as Account) (net.Conn, error) {
	config, err := e.config(ctx, as)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, e.Network, e.Address)
	if err != nil {
		return nil, err
	}
	if b, ok := conn.(interface{ SetReadBuffer(int) error }); ok && e.ReceiveBuffer > 0 {
		if err := b.SetReadBuffer(e.ReceiveBuffer); err != nil {
			conn.Close()
			return nil, err
		}
	}
	if config == nil {
		return conn, nil
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("TLS: %w", err)
	}
	if p := secure.ConnectionState().NegotiatedProtocol; p != "h2" {
		conn.Close()
		return nil, fmt.Errorf("TLS: the server speaks %q, not h2", p)
	}
	return secure, nil
}

// config returns the TLS configuration of a client that runs as this account; nil for plain text.
func (e *Endpoint) config(ctx context.Context, as Account) (*tls.Config, error) {
	if e.TLS == nil || e.Issuer == nil {
		return e.TLS, nil
	}
	own, err := e.Issuer.of(ctx, as)
	if err != nil {
		return nil, err
	}
	config := e.TLS.Clone()
	config.Certificates = []tls.Certificate{*own}
	return config, nil
}

// Header returns what the streams of a client that runs as this account send in their headers.
func (e *Endpoint) Header(as Account) (Header, error) {
	h := Header{Authority: e.Authority, Secure: e.TLS != nil}
	if e.TokenFile != "" {
		text, err := os.ReadFile(as.in(e.TokenFile))
		if err != nil {
			return h, err
		}
		h.Token = strings.TrimSpace(string(text))
	}
	return h, nil
}

// Abort closes a connection like a host that disappears, without an orderly end, if the network allows it.
func Abort(conn net.Conn) {
	plain := conn
	if secure, ok := conn.(*tls.Conn); ok {
		plain = secure.NetConn()
	}
	if t, ok := plain.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	plain.Close()
}
