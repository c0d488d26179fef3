package ca

import (
	"bytes"
	"encoding/pem"
	"fmt"
)

// Names of the parts of an authority in a Secret or a directory: those of istio-ca-secret and cacerts, and those of a
// Secret of type kubernetes.io/tls.
const (
	certName, keyName, chainName, rootsName = "ca-cert.pem", "ca-key.pem", "cert-chain.pem", "root-cert.pem"
	tlsCertName, tlsKeyName, tlsRootsName   = "tls.crt", "tls.key", "ca.crt"
)

// RevocationsName is where Istio's users put the list of certificates that the authority has revoked. It is not served.
const RevocationsName = "ca-crl.pem"

// Names returns the names of all parts that FromData reads.
func Names() []string {
	return []string{certName, keyName, chainName, rootsName, tlsCertName, tlsKeyName, tlsRootsName}
}

// FromData returns the material in a Secret's data or in files, by name. It returns false if there is no key.
func FromData(data map[string][]byte) (Material, bool, error) {
	switch {
	case len(data[keyName]) > 0:
		m := Material{Cert: data[certName], Key: data[keyName], Chain: data[chainName], Roots: data[rootsName]}
		if len(m.Roots) == 0 { // older self-signed authorities store no roots of their own
			m.Roots = m.Cert
		}
		return m, true, nil
	case len(data[tlsKeyName]) > 0:
		b, rest := pem.Decode(data[tlsCertName])
		if b == nil {
			return Material{}, true, fmt.Errorf("%w: %s: want certificates in PEM", ErrMaterial, tlsCertName)
		}
		return Material{Cert: pem.EncodeToMemory(b), Key: data[tlsKeyName], Chain: bytes.TrimSpace(rest),
			Roots: data[tlsRootsName]}, true, nil
	}
	return Material{}, false, nil
}

// Data returns the data of the Secret that stores a self-signed authority.
func (m Material) Data() map[string][]byte {
	return map[string][]byte{certName: m.Cert, keyName: m.Key, chainName: m.Chain, rootsName: m.Roots}
}
