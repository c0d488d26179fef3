package secrets

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

var (
	errEncrypted = errors.New("the private key is encrypted: want one without a passphrase")
	errNoKey     = errors.New("want a private key in PEM")
	errKeyKind   = errors.New("want an RSA, ECDSA or Ed25519 key: Envoy takes no others")
)

// readKey returns the first private key of a text, if Envoy takes it.
func readKey(text []byte) (crypto.Signer, error) {
	for b, err := range blocks(text) {
		switch {
		case err != nil:
			return nil, err
		case !isKey(b):
			continue
		case b.Type == "ENCRYPTED PRIVATE KEY" || len(b.Headers) > 0:
			return nil, errEncrypted
		}
		key, err := parseKey(b)
		if err != nil {
			return nil, err
		}
		return key, weak(key)
	}
	return nil, errNoKey
}

// parseKey reads a key in the forms that Envoy knows for the name of the block: what is called by its algorithm may be
// of PKCS#8 all the same, but not the other way round.
func parseKey(b *pem.Block) (crypto.Signer, error) {
	var key any
	var err error
	switch b.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(b.Bytes)
	case "RSA PRIVATE KEY":
		if key, err = x509.ParsePKCS1PrivateKey(b.Bytes); err != nil {
			key, err = x509.ParsePKCS8PrivateKey(b.Bytes)
		}
	case "EC PRIVATE KEY":
		if key, err = x509.ParseECPrivateKey(b.Bytes); err != nil {
			key, err = x509.ParsePKCS8PrivateKey(b.Bytes)
		}
	default:
		return nil, errKeyKind
	}
	if err != nil {
		return nil, safe(err)
	}
	_, isRSA := key.(*rsa.PrivateKey)
	_, isEC := key.(*ecdsa.PrivateKey)
	if !isRSA && b.Type == "RSA PRIVATE KEY" || !isEC && b.Type == "EC PRIVATE KEY" {
		return nil, errors.New("the key is of another kind than its PEM block says")
	}
	signer, ok := key.(crypto.Signer)
	if !ok { // one that agrees on keys only
		return nil, errKeyKind
	}
	return signer, nil
}

// weak returns why Envoy refuses a key; nil if it does not.
func weak(key crypto.Signer) error {
	switch key := key.(type) {
	case *rsa.PrivateKey:
		if bits := key.N.BitLen(); bits < minRSA || bits > maxRSA {
			return fmt.Errorf("an RSA key of %d bits: want %d to %d", bits, minRSA, maxRSA)
		}
		if n := len(key.Primes); n != 2 {
			return fmt.Errorf("an RSA key of %d primes: want 2", n)
		}
	case *ecdsa.PrivateKey:
		if key.Params().BitSize < 256 {
			return fmt.Errorf("an ECDSA key on %s: want P-256, P-384 or P-521", key.Params().Name)
		}
	}
	return nil
}

// minRSA and maxRSA are the bits of RSA keys that Envoy takes.
const minRSA, maxRSA = 2048, 16384
