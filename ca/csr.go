package ca

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// Bounds of RSA keys that are signed: smaller ones are weak, larger ones are costly to verify.
const (
	minRSA = 2048
	maxRSA = 8192
)

// keyOf returns the public key of a certificate signing request in PEM, after checking that the requester holds the
// private key. Everything else in the request is ignored.
func keyOf(text string) (crypto.PublicKey, error) {
	b, rest := pem.Decode([]byte(text))
	if b == nil || b.Type != "CERTIFICATE REQUEST" && b.Type != "NEW CERTIFICATE REQUEST" {
		return nil, errors.New("want a certificate request in PEM")
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("want one certificate request and nothing after it")
	}
	r, err := x509.ParseCertificateRequest(b.Bytes)
	if err != nil {
		return nil, errors.New("the certificate request cannot be read")
	}
	if err := checkKey(r.PublicKey); err != nil {
		return nil, err
	}
	switch r.SignatureAlgorithm {
	case x509.MD5WithRSA, x509.SHA1WithRSA, x509.ECDSAWithSHA1, x509.DSAWithSHA1:
		return nil, fmt.Errorf("the certificate request is signed with %s", r.SignatureAlgorithm)
	}
	if err := r.CheckSignature(); err != nil {
		return nil, errors.New("the certificate request is not signed with its own key")
	}
	return r.PublicKey, nil
}

// checkKey refuses weak keys and uncommon kinds of keys.
func checkKey(key crypto.PublicKey) error {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if n := k.N.BitLen(); n < minRSA || n > maxRSA {
			return fmt.Errorf("the key is RSA with %d bits; want %d to %d", n, minRSA, maxRSA)
		}
		return nil
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() && k.Curve != elliptic.P384() {
			return fmt.Errorf("the key is ECDSA on %s; want P-256 or P-384", k.Curve.Params().Name)
		}
		return nil
	case ed25519.PublicKey:
		return nil
	}
	return errors.New("the key is neither RSA, ECDSA nor Ed25519")
}
