package ca

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"time"

	"github.com/pilotd/pilotd/identity"
)

// ErrMaterial reports material that no authority can be made from; the wrapping error says why.
var ErrMaterial = errors.New("certificate authority")

// ErrExpired reports that the authority's own certificate is not valid at this time.
var ErrExpired = errors.New("the certificate authority's own certificate is not valid at this time")

// skew is how long before the time of signing a certificate becomes valid, for machines whose clocks are behind.
const skew = 2 * time.Minute

// Material is what an authority is made from, in PEM.
type Material struct {
	// Cert is its certificate, Key the key to it.
	Cert, Key []byte
	// Chain are the certificates between Cert and a root. It may contain Cert and roots too.
	Chain []byte
	// Roots are all trusted root certificates.
	Roots []byte
}

// String hides the content, because it includes a private key.
func (Material) String() string { return "(certificate authority)" }

// GoString hides the content too.
func (m Material) GoString() string { return m.String() }

// MarshalText hides the content too, for loggers that encode their arguments.
func (m Material) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// equal reports whether two materials are the same.
func (m Material) equal(o Material) bool {
	return bytes.Equal(m.Cert, o.Cert) && bytes.Equal(m.Key, o.Key) && bytes.Equal(m.Chain, o.Chain) &&
		bytes.Equal(m.Roots, o.Roots)
}

// Authority signs certificates. Immutable after New; safe for concurrent use.
type Authority struct {
	material Material
	cert     *x509.Certificate
	key      crypto.Signer
	// chain are the certificates between a leaf and a root: the authority's own unless it is a root, then its issuers.
	chain    []string
	roots    string
	pool     *x509.CertPool
	notAfter time.Time // when the first certificate of chain and cert expires
}

// String returns the authority's name, without its key.
func (a *Authority) String() string { return "certificate authority " + a.cert.Subject.String() }

// GoString returns what String returns, so that the key is never printed.
func (a *Authority) GoString() string { return a.String() }

// New makes an Authority. It refuses material whose certificates would not be accepted by those who trust its roots.
// Its errors wrap ErrMaterial and never contain part of a key.
func New(m Material) (*Authority, error) {
	certs, err := parseAll(m.Cert)
	if err != nil || len(certs) != 1 {
		return nil, fmt.Errorf("%w: its own certificate: want one certificate in PEM", ErrMaterial)
	}
	a := &Authority{material: m, cert: certs[0], pool: x509.NewCertPool()}
	if !a.cert.IsCA || !a.cert.BasicConstraintsValid || a.cert.KeyUsage != 0 &&
		a.cert.KeyUsage&x509.KeyUsageCertSign == 0 {
		return nil, fmt.Errorf("%w: its own certificate is not one that may sign others", ErrMaterial)
	}
	if a.key, err = parseKey(m.Key); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMaterial, err)
	}
	if public, ok := a.key.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(a.cert.PublicKey) {
		return nil, fmt.Errorf("%w: the key does not belong to its certificate", ErrMaterial)
	}
	roots, err := parseAll(m.Roots)
	if err != nil || len(roots) == 0 {
		return nil, fmt.Errorf("%w: its roots: want certificates in PEM", ErrMaterial)
	}
	for _, r := range roots {
		a.pool.AddCert(r)
		a.roots += encode("CERTIFICATE", r.Raw)
	}
	return a, a.setChain(m.Chain)
}

// setChain builds the chain from the authority's certificate to a root.
func (a *Authority) setChain(chain []byte) error {
	given, err := parseAll(chain)
	if err != nil {
		return fmt.Errorf("%w: its chain: want certificates in PEM", ErrMaterial)
	}
	between := x509.NewCertPool()
	for _, c := range given {
		between.AddCert(c)
	}
	ways, err := a.cert.Verify(x509.VerifyOptions{Roots: a.pool, Intermediates: between,
		CurrentTime: a.cert.NotBefore.Add(time.Second), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if err != nil { // errors contain no key, but may be long
		return fmt.Errorf("%w: its own certificate does not lead to one of its roots", ErrMaterial)
	}
	way := ways[0]
	a.notAfter = way[0].NotAfter
	for _, c := range way[:len(way)-1] { // the last is a root
		a.chain = append(a.chain, encode("CERTIFICATE", c.Raw))
	}
	for _, c := range way {
		if c.NotAfter.Before(a.notAfter) {
			a.notAfter = c.NotAfter
		}
	}
	return nil
}

// Roots returns all trusted roots, in PEM.
func (a *Authority) Roots() string { return a.roots }

// Pool returns the trusted roots for verifying certificates. Callers must not change it.
func (a *Authority) Pool() *x509.CertPool { return a.pool }

// NotAfter returns the time until which the authority can sign.
func (a *Authority) NotAfter() time.Time { return a.notAfter }

// Request describes a certificate to sign.
type Request struct {
	// Key is the public key that the certificate is for.
	Key crypto.PublicKey
	// Who is the identity in the certificate. It is empty for a server certificate, which has Hosts.
	Who identity.Identity
	// Hosts are the DNS names of a server certificate.
	Hosts []string
	// Life is the lifetime of the certificate.
	Life time.Duration
}

// Sign signs a certificate and returns its chain in PEM, the leaf first and all roots in the last string. The
// certificate expires no later than the authority itself. Each call costs one signature with the authority's key: a
// millisecond for RSA.
func (a *Authority) Sign(r Request, now time.Time) ([]string, error) {
	if !now.Before(a.notAfter) || now.Before(a.cert.NotBefore.Add(-skew)) {
		return nil, ErrExpired
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)), NotBefore: now.Add(-skew), NotAfter: now.Add(r.Life),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    r.Hosts, BasicConstraintsValid: true,
	}
	if a.notAfter.Before(template.NotAfter) {
		template.NotAfter = a.notAfter
	}
	if r.Who != (identity.Identity{}) {
		name, err := url.Parse(r.Who.String())
		if err != nil {
			return nil, err
		}
		template.URIs = []*url.URL{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, r.Key, a.key)
	if err != nil {
		return nil, err
	}
	out := append([]string{encode("CERTIFICATE", der)}, a.chain...)
	return append(out, a.roots), nil
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// parseAll parses a text that consists of certificates in PEM and nothing else.
func parseAll(text []byte) (out []*x509.Certificate, err error) {
	for {
		var b *pem.Block
		if b, text = pem.Decode(text); b == nil {
			break
		}
		if b.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("a %q is no certificate", b.Type)
		}
		c, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	if len(bytes.TrimSpace(text)) > 0 {
		return nil, errors.New("there is something after the last certificate")
	}
	return out, nil
}

// parseKey parses a private key. Its errors contain no part of the key.
func parseKey(text []byte) (crypto.Signer, error) {
	b, rest := pem.Decode(text)
	for b != nil && b.Type == "EC PARAMETERS" { // openssl writes these before the key
		b, rest = pem.Decode(rest)
	}
	if b == nil {
		return nil, errors.New("its key: want a key in PEM")
	}
	var key any
	var err error
	switch b.Type {
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(b.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(b.Bytes)
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(b.Bytes)
	default:
		return nil, fmt.Errorf("its key: a %.40q is no key that can be read", b.Type)
	}
	if err != nil {
		return nil, errors.New("its key cannot be read")
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return k, nil
	case *ecdsa.PrivateKey:
		return k, nil
	case ed25519.PrivateKey:
		return k, nil
	}
	return nil, errors.New("its key is of a kind that cannot sign")
}
