package secret

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
)

// KeyKind is the kind of the workload's private keys.
type KeyKind struct {
	// Curve is an elliptic curve; nil means RSA.
	Curve elliptic.Curve
	// Bits is the size of an RSA key; 0 means 2048.
	Bits int
	// PKCS8 makes keys be written in PKCS #8 form.
	PKCS8 bool
}

// generate makes a private key, and returns it with its PEM form.
func (k KeyKind) generate() (crypto.Signer, []byte, error) {
	var key crypto.Signer
	var der []byte
	var name string
	var err error
	if k.Curve == nil {
		r, rerr := rsa.GenerateKey(rand.Reader, max(k.Bits, 2048))
		if rerr != nil {
			return nil, nil, rerr
		}
		key, name, der = r, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(r)
	} else {
		e, eerr := ecdsa.GenerateKey(k.Curve, rand.Reader)
		if eerr != nil {
			return nil, nil, eerr
		}
		key, name = e, "EC PRIVATE KEY"
		if der, err = x509.MarshalECPrivateKey(e); err != nil {
			return nil, nil, err
		}
	}
	if k.PKCS8 {
		name = "PRIVATE KEY"
		if der, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
			return nil, nil, err
		}
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: name, Bytes: der}), nil
}

// request returns a certificate signing request for a SPIFFE ID. Its subject is empty, so the name extension is
// critical.
func request(key crypto.Signer, id string) ([]byte, error) {
	const uriTag = 6
	names, err := asn1.Marshal([]asn1.RawValue{{Tag: uriTag, Class: asn1.ClassContextSpecific, Bytes: []byte(id)}})
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:         pkix.Name{Organization: []string{""}},
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Critical: true, Value: names}},
	}, key)
	if err != nil {
		return nil, fmt.Errorf("request for a certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}
