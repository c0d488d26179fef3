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

// Endpoint is where a server is and how it is reached. Immutable once it is used.
type Endpoint struct {
	Network, Address string
	// Authority is what streams say whom they want; the address's host by default.
	Authority string
	// TLS is nil for plain text.
	TLS *tls.Config
	// TokenFile holds the bearer's token; it is read for every connection, for tokens are renewed. {namespace} and
	// {account} in its name are those of the client. "" is none.
	TokenFile string
	// Issuer gives each client a certificate of its own; nil is none.
	Issuer *Issuer
	// ReceiveBuffer is how many bytes the system keeps for a connection that are not read yet; 0 is what it chooses.
	// With thousands of connections its own choice can be more than it has for all. On loopback less than 256 KiB, four
	// of its packets, is slow.
	ReceiveBuffer int
}

// Secrets are the files and names of a TLS connection.
type Secrets struct {
	// CA is a file of certificates that are trusted; those of the system by default.
	CA string
	// Cert and Key are the files of the client's certificate.
	Cert, Key string
	// ServerName is whom the server's certificate must be for, and SNI; the target's host by default.
	ServerName string
	// Insecure takes any certificate.
	Insecure bool
}

// At returns the plain endpoint of a target: host:port, or unix:PATH.
func At(target string) Endpoint {
	if path, ok := strings.CutPrefix(target, "unix:"); ok {
		if p, ok := strings.CutPrefix(path, "//"); ok {
			path = p
		}
		return Endpoint{Network: "unix", Address: path, Authority: "localhost"}
	}
	return Endpoint{Network: "tcp", Address: target, Authority: target}
}

// Secure returns the endpoint with TLS.
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

// config returns the TLS of a client that runs as this account; nil for plain text.
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

// Header returns what streams of a client that runs as this account say.
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

// Abort closes a connection as a host that is gone does, without an orderly end, where the network allows it.
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
