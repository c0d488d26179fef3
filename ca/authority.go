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

// ErrMaterial reports that an authority cannot be made of what is given; the wrapping error says why.
var ErrMaterial = errors.New("certificate authority")

// ErrExpired reports that an authority's own certificate is not valid any more.
var ErrExpired = errors.New("the certificate authority's own certificate is not valid at this time")

// skew is how long before it is made a certificate is valid, for clocks that are behind.
const skew = 2 * time.Minute

// Material is what an authority is made of, in PEM.
type Material struct {
	// Cert is its certificate, Key the key to it.
	Cert, Key []byte
	// Chain are the certificates between Cert and a root; Cert and roots may be among them.
	Chain []byte
	// Roots are all that are trusted.
	Roots []byte
}

// String says nothing, for there is a key in it.
func (Material) String() string { return "(certificate authority)" }

// GoString says nothing either.
func (m Material) GoString() string { return m.String() }

// MarshalText returns what String returns: logs that encode what they are given must not have the key either.
func (m Material) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// equal reports whether two materials are the same.
func (m Material) equal(o Material) bool {
	return bytes.Equal(m.Cert, o.Cert) && bytes.Equal(m.Key, o.Key) && bytes.Equal(m.Chain, o.Chain) &&
		bytes.Equal(m.Roots, o.Roots)
}

// Authority signs. Immutable after New; safe for concurrent use.
type Authority struct {
	material Material
	cert     *x509.Certificate
	key      crypto.Signer
	// chain is what stands between a leaf and a root: the authority's own certificate unless it is a root, and those
	// above it.
	chain    []string
	roots    string
	pool     *x509.CertPool
	notAfter time.Time // the first end of the certificates in chain and cert
}

// String returns the authority's name, without its key.
func (a *Authority) String() string { return "certificate authority " + a.cert.Subject.String() }

// GoString returns what String returns: the key is not to be seen.
func (a *Authority) GoString() string { return a.String() }

// New makes an Authority. It refuses material that could not sign what those who trust the roots accept: its errors
// wrap ErrMaterial, and have no part of a key.
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

// setChain finds the way from the authority's certificate to a root.
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
	if err != nil { // nothing of an error has a key in it, but it may be long
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

// Roots returns all roots that are trusted, in PEM.
func (a *Authority) Roots() string { return a.roots }

// Pool returns the same roots, to check certificates with. Callers must not change it.
func (a *Authority) Pool() *x509.CertPool { return a.pool }

// NotAfter returns until when the authority can sign.
func (a *Authority) NotAfter() time.Time { return a.notAfter }

// Request is what is to be signed.
type Request struct {
	// Key is the key whose owner is named.
	Key crypto.PublicKey
	// Who is its owner; nobody for a server, which has Hosts.
	Who identity.Identity
	// Hosts are a server's names.
	Hosts []string
	// Life is for how long.
	Life time.Duration
}

// Sign makes a certificate: its chain in PEM, the leaf first, all roots in the last string. It is valid for no longer
// than the authority itself. It costs a signature of the authority's key: a millisecond for RSA.
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

// parseAll returns the certificates in a text, which has nothing else in PEM.
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

// parseKey returns the key in a text. Its errors have no part of it.
func parseKey(text []byte) (crypto.Signer, error) {
	b, rest := pem.Decode(text)
	for b != nil && b.Type == "EC PARAMETERS" { // openssl writes these first
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
