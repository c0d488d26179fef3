// Package upstream connects the agent to its control plane, for configuration and for certificates.
//
// The agent verifies the server by roots in a file and by the server's DNS name. It proves its own identity with the
// pod's token, which it reads again for each call because the kubelet replaces it; virtual machines show a certificate
// instead.
package upstream

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// Names of the files of a certificate in a directory.
const (
	ChainFile = "cert-chain.pem"
	KeyFile   = "key.pem"
	RootFile  = "root-cert.pem"
)

// SystemRoots in place of a path stands for the roots of the machine.
const SystemRoots = "SYSTEM"

const (
	window           = 1 << 20
	keepaliveTimeout = 10 * time.Second
	dialTimeout      = 10 * time.Second
)

// Server is a control plane and the settings for calling it.
type Server struct {
	// Address is host:port. Name is the DNS name that its certificate must have.
	Address, Name string
	// Plaintext disables TLS.
	Plaintext bool
	// Roots is the file of the roots that verify the server, or SystemRoots.
	Roots string
	// Token is the file of the pod's token. If it does not exist, no token is sent.
	Token string
	// Certificates is the directory of a client certificate. Empty means none.
	Certificates string
	// Headers are sent with each call.
	Headers map[string]string
	// Keepalive is how long a connection may be silent before it is pinged, KeepaliveTimeout how long an answer to that
	// may take; 10 s when 0.
	Keepalive, KeepaliveTimeout time.Duration
	// Dialer opens connections; nil means TCP.
	Dialer func(context.Context, string) (net.Conn, error)
}

// Dial creates a connection, which the caller closes. It does not wait until the connection is established.
func (s Server) Dial() (*grpc.ClientConn, error) {
	transport := insecure.NewCredentials()
	if !s.Plaintext {
		config, err := s.tls()
		if err != nil {
			return nil, err
		}
		transport = credentials.NewTLS(config)
	}
	var more []grpc.DialOption
	if s.Dialer != nil {
		more = append(more, grpc.WithContextDialer(s.Dialer))
	}
	conn, err := grpc.NewClient("passthrough:///"+s.Address, append(more, grpc.WithTransportCredentials(transport),
		grpc.WithAuthority(s.Name), grpc.WithPerRPCCredentials(caller{s}),
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: dialTimeout}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: s.Keepalive,
			Timeout: cmp.Or(s.KeepaliveTimeout, keepaliveTimeout)}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)))...)
	if err != nil {
		return nil, fmt.Errorf("control plane %s: %w", s.Address, err)
	}
	return conn, nil
}

func (s Server) tls() (*tls.Config, error) {
	out := &tls.Config{ServerName: s.Name, MinVersion: tls.VersionTLS12}
	if s.Roots != SystemRoots {
		text, err := os.ReadFile(s.Roots)
		if err != nil {
			return nil, fmt.Errorf("roots of the control plane: %w", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("roots of the control plane: %s has no certificate in PEM", s.Roots)
		}
	}
	if s.Certificates != "" {
		out.GetClientCertificate = s.clientCertificate
	}
	return out, nil
}

// clientCertificate reads the client certificate anew for each handshake. It shows none if the certificate has expired,
// since the token may be enough.
func (s Server) clientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(s.Certificates, ChainFile), filepath.Join(s.Certificates, KeyFile))
	if errors.Is(err, os.ErrNotExist) || err == nil && time.Now().After(pair.Leaf.NotAfter) {
		return &tls.Certificate{}, nil
	}
	return &pair, err
}

// caller adds credentials to each call.
type caller struct{ server Server }

// GetRequestMetadata returns the headers of a call, with the token.
func (c caller) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	out := make(map[string]string, len(c.server.Headers)+1)
	for k, v := range c.server.Headers {
		out[strings.ToLower(k)] = v
	}
	token, err := os.ReadFile(c.server.Token)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("the pod's token: %w", err)
	}
	if t := strings.TrimSpace(string(token)); t != "" {
		out["authorization"] = "Bearer " + t
	}
	return out, nil
}

// RequireTransportSecurity allows the token on a plaintext connection if ProxyConfig asks for plaintext.
func (c caller) RequireTransportSecurity() bool { return !c.server.Plaintext }
