package ca

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"
)

// Root are the properties of a root that this package makes.
type Root struct {
	// Organization is the organization in its subject: the trust domain.
	Organization string
	// Life is its lifetime.
	Life time.Duration
	// Bits is the size of its RSA key; 0 means 2048.
	Bits int
}

// SelfSigned makes a root with a new key.
func SelfSigned(r Root, now time.Time) (Material, error) {
	if r.Bits == 0 {
		r.Bits = minRSA
	}
	key, err := rsa.GenerateKey(rand.Reader, r.Bits)
	if err != nil {
		return Material{}, fmt.Errorf("%w: a new key: %w", ErrMaterial, err)
	}
	cert, err := selfSign(r, key, &x509.Certificate{Subject: pkix.Name{Organization: []string{r.Organization}}}, now)
	if err != nil {
		return Material{}, err
	}
	text := encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
	return Material{Cert: cert, Key: []byte(text), Roots: cert}, nil
}

// Renewed returns the material with a new root certificate that has the same key and name and expires later. The former
// roots stay trusted until they expire; certificates signed before and after are valid under both. It is for
// self-signed authorities alone.
func (a *Authority) Renewed(r Root, now time.Time) (Material, error) {
	if a.cert.CheckSignatureFrom(a.cert) != nil {
		return Material{}, fmt.Errorf("%w: it is not self-signed", ErrMaterial)
	}
	cert, err := selfSign(r, a.key, a.cert, now)
	if err != nil {
		return Material{}, err
	}
	m := Material{Cert: cert, Key: a.material.Key, Roots: cert}
	before, err := parseAll(a.material.Roots)
	if err != nil {
		return Material{}, err
	}
	for _, c := range before {
		if now.Before(c.NotAfter) {
			m.Roots = append(m.Roots, encode("CERTIFICATE", c.Raw)...)
		}
	}
	return m, nil
}

// due reports whether it is time to renew a self-signed root: less than a fifth of its life is left.
func (a *Authority) due(now time.Time) bool {
	life := a.cert.NotAfter.Sub(a.cert.NotBefore)
	return a.cert.NotAfter.Sub(now) < life/5
}

// selfSign makes a root certificate for a key. Its subject and key identifier are the same as like's, byte for byte,
// because certificates name their issuer by both and verifiers choose among several roots by them.
func selfSign(r Root, key crypto.Signer, like *x509.Certificate, now time.Time) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)), Subject: like.Subject,
		RawSubject: like.RawSubject, SubjectKeyId: like.SubjectKeyId, NotBefore: now.Add(-skew), NotAfter: now.Add(r.Life),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("%w: a new root: %w", ErrMaterial, err)
	}
	return []byte(encode("CERTIFICATE", der)), nil
}
