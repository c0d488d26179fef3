package secure

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/pilotd/pilotd/ca"
)

// errNoCertificate fails handshakes until there is a certificate to serve.
var errNoCertificate = errors.New("there is no certificate to serve yet")

// servingLife is the lifetime of a serving certificate that pilotd signs for itself. It is renewed after half of that,
// and its key is only in memory.
const servingLife = 24 * time.Hour

// Serving is the certificate that pilotd presents to its clients: one from files, or one that its own authority signs
// for its names. Safe for concurrent use.
type Serving struct {
	// Immutable after newServing.
	certFile, keyFile string
	hosts             []string
	authority         func() *ca.Authority
	now               func() time.Time

	mu sync.Mutex
	// Guarded by mu.
	cert *tls.Certificate
	of   *ca.Authority // the authority that signed cert
	till time.Time     // when to renew cert
}

// Get returns the certificate for a handshake. If a new one is due it signs it, and other handshakes wait for that.
func (s *Serving) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.certFile != "" {
		if s.cert == nil {
			return nil, errNoCertificate
		}
		return s.cert, nil
	}
	a, now := s.authority(), s.now()
	if a == nil {
		return nil, errNoCertificate
	}
	if s.cert == nil || s.of != a || now.After(s.till) {
		cert, err := s.sign(a, now)
		if err != nil {
			return nil, err
		}
		s.cert, s.of, s.till = cert, a, now.Add(servingLife/2)
	}
	return s.cert, nil
}

// sign makes a certificate with a new key.
func (s *Serving) sign(a *ca.Authority, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	chain, err := a.Sign(ca.Request{Key: key.Public(), Hosts: s.hosts, Life: servingLife}, now)
	if err != nil {
		return nil, err
	}
	out := &tls.Certificate{PrivateKey: key}
	for _, text := range chain[:len(chain)-1] { // without the root, which clients must already have
		b, _ := pem.Decode([]byte(text))
		out.Certificate = append(out.Certificate, b.Bytes)
	}
	return out, nil
}

// watch reads the files, now and at each tick, until ctx ends, and keeps the last good certificate. It calls problem
// once for each new problem.
func (s *Serving) watch(ctx context.Context, tick <-chan time.Time, problem func(error)) {
	told := ""
	for {
		err := s.read()
		if err != nil && err.Error() != told {
			problem(err)
		}
		if told = ""; err != nil {
			told = err.Error()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

// read reads the files once.
func (s *Serving) read() error {
	cert, err := tls.LoadX509KeyPair(s.certFile, s.keyFile)
	if err != nil {
		return fmt.Errorf("the serving certificate %s with the key %s: %w", s.certFile, s.keyFile, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cert = &cert
	return nil
}

// ready reports whether there is a certificate to serve.
func (s *Serving) ready() bool { _, err := s.Get(nil); return err == nil }

// readRoots returns the certificates in a file.
func readRoots(file string) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []*x509.Certificate
	for b, rest := pem.Decode(text); b != nil; b, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: want certificates in PEM", file)
	}
	return out, nil
}
