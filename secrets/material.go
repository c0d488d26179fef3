package secrets

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ocsp"
)

// Data is what an object has, by key.
type Data map[string][]byte

// String says nothing: keys are not to be seen.
func (Data) String() string { return "(secret)" }

// GoString says nothing either.
func (d Data) GoString() string { return d.String() }

// MarshalText says nothing either.
func (d Data) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Material is what an object has that is of use, checked. Immutable.
type Material struct {
	certificate certificate
	noCert      error // why there is no certificate
	roots       roots
	noRoots     error
}

// certificate is a certificate with its key.
type certificate struct {
	chain, key []byte
	staple     []byte // an OCSP response; none when empty
	until      time.Time
}

// roots are certificates of authorities, and what they have revoked.
type roots struct {
	certs, revoked []byte
	until          time.Time // when the last of them expires
}

// String says nothing: keys are not to be seen.
func (*Material) String() string { return "(secret)" }

// GoString says nothing either.
func (m *Material) GoString() string { return m.String() }

// layout is the keys under which an object has things.
type layout struct{ chain, key, roots, revoked, staple string }

// layouts are those that objects may have. The first that has what is looked for counts.
func layouts() []layout {
	return []layout{
		{"cert", "key", "cacert", "crl", ""},
		{"tls.crt", "tls.key", "ca.crt", "ca.crl", "tls.ocsp-staple"},
	}
}

// maxData bounds the bytes of an object: an API server stores no larger ones.
const maxData = 1 << 20

// Read takes what is of use out of an object's data.
func Read(d Data) *Material {
	m := &Material{}
	size := 0
	for _, v := range d {
		size += len(v)
	}
	if size > maxData {
		m.noCert = fmt.Errorf("it has %d bytes: want at most %d", size, maxData)
		m.noRoots = m.noCert
		return m
	}
	m.certificate, m.noCert = readCertificate(d)
	m.roots, m.noRoots = readRoots(d)
	return m
}

// readCertificate returns the certificate of the first layout that has one.
func readCertificate(d Data) (certificate, error) {
	for _, l := range layouts() {
		chain, key := d[l.chain], d[l.key]
		if len(chain) == 0 || len(key) == 0 {
			continue
		}
		c := certificate{chain: chain, key: key, staple: d[l.staple]}
		if err := c.check(l); err != nil {
			return certificate{}, err
		}
		return c, nil
	}
	return certificate{}, fmt.Errorf("it has no certificate with a key: want tls.crt and tls.key, or cert and key; it has %s",
		keysOf(d))
}

// check holds the parts against each other, and against what Envoy takes.
func (c *certificate) check(l layout) error {
	if err := noKeys(c.chain); err != nil {
		return fmt.Errorf("%s: %w", l.chain, err)
	}
	pair, err := tls.X509KeyPair(c.chain, c.key)
	if err != nil {
		return fmt.Errorf("%s and %s: %w", l.chain, l.key, safe(err))
	}
	switch key := pair.Leaf.PublicKey.(type) {
	case *rsa.PublicKey:
		if key.N.BitLen() < 2048 {
			return fmt.Errorf("%s: an RSA key of %d bits: want at least 2048", l.key, key.N.BitLen())
		}
	case *ecdsa.PublicKey:
		if key.Curve.Params().BitSize < 256 {
			return fmt.Errorf("%s: an ECDSA key on %s: want P-256, P-384 or P-521", l.key, key.Curve.Params().Name)
		}
	default:
		return fmt.Errorf("%s: want an RSA or ECDSA key: Envoy takes no others", l.key)
	}
	c.until = pair.Leaf.NotAfter
	if len(c.staple) > 0 {
		r, err := ocsp.ParseResponse(c.staple, nil)
		if err != nil || r.SerialNumber.Cmp(pair.Leaf.SerialNumber) != 0 {
			return fmt.Errorf("%s: want an OCSP response, in DER, about the certificate", l.staple)
		}
	}
	return nil
}

// noKeys refuses a text that has private keys where certificates are expected.
func noKeys(text []byte) error {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return errors.New("a private key stands among the certificates")
		}
	}
	return nil
}

// readRoots returns the roots of the first layout that has some.
func readRoots(d Data) (roots, error) {
	for _, l := range layouts() {
		if len(d[l.roots]) == 0 {
			continue
		}
		r := roots{certs: d[l.roots], revoked: d[l.revoked]}
		if err := r.check(l); err != nil {
			return roots{}, err
		}
		return r, nil
	}
	return roots{}, fmt.Errorf("it has no roots: want ca.crt or cacert; it has %s", keysOf(d))
}

func (r *roots) check(l layout) error {
	if err := noKeys(r.certs); err != nil {
		return fmt.Errorf("%s: %w", l.roots, err)
	}
	n := 0
	for block, rest := pem.Decode(r.certs); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Errorf("%s: certificate %d: %w", l.roots, n+1, safe(err))
		}
		if n++; c.NotAfter.After(r.until) {
			r.until = c.NotAfter
		}
	}
	if n == 0 {
		return fmt.Errorf("%s: want certificates in PEM", l.roots)
	}
	if len(r.revoked) == 0 {
		return nil
	}
	n = 0
	for block, rest := pem.Decode(r.revoked); block != nil; block, rest = pem.Decode(rest) {
		if n++; block.Type != "X509 CRL" {
			return fmt.Errorf("%s: want lists of revoked certificates alone, in PEM", l.revoked)
		}
		if _, err := x509.ParseRevocationList(block.Bytes); err != nil {
			return fmt.Errorf("%s: list %d: %w", l.revoked, n, safe(err))
		}
	}
	if n == 0 {
		return fmt.Errorf("%s: want a list of revoked certificates, in PEM", l.revoked)
	}
	return nil
}

// maxReason bounds what parsers may say of a secret.
const maxReason = 160

// safe is an error of a parser, on one line and short. Parsers name fields and types, and quote no content.
func safe(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	return errors.New(text[:min(len(text), maxReason)])
}

// keysOf names the keys of an object.
func keysOf(d Data) string {
	keys := slices.Sorted(maps.Keys(d))
	if len(keys) == 0 {
		return "nothing"
	}
	if more := len(keys) - 8; more > 0 {
		return strings.Join(keys[:8], ", ") + fmt.Sprintf(" and %d others", more)
	}
	return strings.Join(keys, ", ")
}
