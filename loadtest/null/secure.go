package null

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// Credentials returns TLS credentials of a server: a key of the kind that control planes use, and a self-signed
// certificate. They ask clients for certificates without verifying them, and do not resume sessions.
func Credentials() (grpc.ServerOption, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "null"},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(30 * 24 * time.Hour), DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return grpc.Creds(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, SessionTicketsDisabled: true,
		ClientAuth:   tls.RequestClientCert,
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}})), nil
}
