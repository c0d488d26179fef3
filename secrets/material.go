package secrets

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
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
	listsUntil     time.Time // when the first list of what is revoked expires; zero for never
}

// String says nothing: keys are not to be seen.
func (*Material) String() string { return "(secret)" }

// GoString says nothing either.
func (m *Material) GoString() string { return m.String() }

// layout is the keys under which an object has things.
type layout struct {
	chain, key, roots, revoked, staple string
	// revokedToo has the list of revoked certificates where revoked has none: the other layout's key. Who mixes them up
	// must not have certificates accepted that are revoked.
	revokedToo string
}

// layouts are those that objects may have. The first that has what is looked for counts.
func layouts() []layout {
	return []layout{
		{"cert", "key", "cacert", "crl", "tls.ocsp-staple", "ca.crl"},
		{"tls.crt", "tls.key", "ca.crt", "ca.crl", "tls.ocsp-staple", "crl"},
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
	leaf, err := readChain(c.chain)
	if err != nil {
		return fmt.Errorf("%s: %w", l.chain, err)
	}
	key, err := readKey(c.key)
	if err != nil {
		return fmt.Errorf("%s: %w", l.key, err)
	}
	if of, ok := leaf.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !of.Equal(key.Public()) {
		return fmt.Errorf("%s and %s: the private key is not that of the first certificate", l.chain, l.key)
	}
	c.until = leaf.NotAfter
	if len(c.staple) == 0 && mustStaple(leaf) {
		return fmt.Errorf("%s: the certificate says that an OCSP response comes with it: want tls.ocsp-staple", l.chain)
	}
	if len(c.staple) > 0 {
		r, err := ocsp.ParseResponse(c.staple, nil)
		if err != nil || r.SerialNumber.Cmp(leaf.SerialNumber) != 0 {
			return fmt.Errorf("%s: want an OCSP response, in DER, about the certificate", l.staple)
		}
	}
	return nil
}

// readChain returns the first certificate of a chain whose certificates can all be read.
func readChain(text []byte) (leaf *x509.Certificate, err error) {
	n := 0
	for b, err := range blocks(text) {
		if err == nil {
			err = plain(b)
		}
		if err != nil {
			return nil, err
		}
		if !isCertificate(b) {
			continue
		}
		n++
		c, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", n, safe(err))
		}
		if leaf == nil {
			leaf = c
		}
	}
	if leaf == nil {
		return nil, errors.New("want certificates in PEM")
	}
	return leaf, nil
}

// mustStaple reports whether a certificate is good only together with an OCSP response (RFC 7633).
func mustStaple(c *x509.Certificate) bool {
	return slices.ContainsFunc(c.Extensions, func(e pkix.Extension) bool {
		return e.Id.Equal(asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 24}) && bytes.Equal(e.Value, []byte{0x30, 3, 2, 1, 5})
	})
}

// readRoots returns the roots of the first layout that has some.
func readRoots(d Data) (roots, error) {
	for _, l := range layouts() {
		if len(d[l.roots]) == 0 {
			continue
		}
		r := roots{certs: d[l.roots], revoked: d[l.revoked]}
		if other := l.revokedToo; len(r.revoked) == 0 && len(d[other]) > 0 {
			r.revoked, l.revoked = d[other], other
		}
		if err := r.check(l); err != nil {
			return roots{}, err
		}
		return r, nil
	}
	return roots{}, fmt.Errorf("it has no roots: want ca.crt or cacert; it has %s", keysOf(d))
}

func (r *roots) check(l layout) error {
	n := 0
	for b, err := range blocks(r.certs) {
		if err == nil {
			err = plain(b)
		}
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", l.roots, err)
		case b.Type == listType: // Envoy takes them from here too
			if err := r.list(b); err != nil {
				return fmt.Errorf("%s: %w", l.roots, err)
			}
		case isCertificate(b):
			c, err := x509.ParseCertificate(b.Bytes)
			if n++; err != nil {
				return fmt.Errorf("%s: certificate %d: %w", l.roots, n, safe(err))
			}
			if c.NotAfter.After(r.until) {
				r.until = c.NotAfter
			}
		}
	}
	if n == 0 {
		return fmt.Errorf("%s: want certificates in PEM", l.roots)
	}
	return r.lists(l)
}

// listType is what blocks with lists of revoked certificates are called.
const listType = "X509 CRL"

// lists checks the lists of revoked certificates.
func (r *roots) lists(l layout) error {
	n := 0
	for b, err := range blocks(r.revoked) {
		n++
		switch {
		case err != nil:
		case b.Type != listType:
			err = errors.New("want lists of revoked certificates alone, in PEM")
		default:
			if err = r.list(b); err != nil {
				err = fmt.Errorf("list %d: %w", n, err)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", l.revoked, err)
		}
	}
	if n == 0 && len(r.revoked) > 0 {
		return fmt.Errorf("%s: want a list of revoked certificates, in PEM", l.revoked)
	}
	return nil
}

// list checks one list, and notes when it expires.
func (r *roots) list(b *pem.Block) error {
	if len(b.Headers) > 0 {
		return errHeaders
	}
	until := time.Time{}
	if list, err := x509.ParseRevocationList(b.Bytes); err == nil {
		until = list.NextUpdate
	} else {
		first := pkix.CertificateList{} // of the first version
		if _, old := asn1.Unmarshal(b.Bytes, &first); old != nil || first.TBSCertList.Version != 0 ||
			len(first.TBSCertList.Extensions) > 0 {
			return safe(err)
		}
		until = first.TBSCertList.NextUpdate
	}
	if !until.IsZero() && (r.listsUntil.IsZero() || until.Before(r.listsUntil)) {
		r.listsUntil = until
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
