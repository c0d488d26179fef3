package parts

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"

	"github.com/pilotd/pilotd/e2e/testnet"
)

// Authority is a certificate authority made for one test; all its pods trust it.
type Authority struct {
	// Immutable after NewAuthority.
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	// Root is the certificate that pods trust.
	Root []byte
}

// NewAuthority makes an authority for one test.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"cluster.local"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &Authority{key: key, cert: cert, Root: pemBlock("CERTIFICATE", der)}
}

// Serve returns the flags with which pilotd serves xDS over TLS, with this authority as its own.
func (a *Authority) Serve(t testing.TB) []string {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(a.key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string][]byte{"ca-cert.pem": a.Root, "root-cert.pem": a.Root,
		"ca-key.pem": pemBlock("EC PRIVATE KEY", der)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{fmt.Sprintf("--secureGRPCAddr=%s:%d", testnet.Host, securePort), "--caDir=" + dir}
}

// workload issues a certificate for the service account "default" of a workload's namespace.
func (a *Authority) workload(w Workload) (chain, key []byte, err error) {
	return a.issue(&x509.Certificate{URIs: []*url.URL{{Scheme: "spiffe", Host: "cluster.local",
		Path: "/ns/" + w.Namespace + "/sa/default"}}})
}

// Host issues a certificate for DNS names, and returns chain and key as PEM. The certificate expires at until, unless
// that is zero.
func (a *Authority) Host(t testing.TB, until time.Time, names ...string) (chain, key []byte) {
	t.Helper()
	chain, key, err := a.issue(&x509.Certificate{DNSNames: names, NotAfter: until})
	if err != nil {
		t.Fatal(err)
	}
	return chain, key
}

// RSAHost is Host with an RSA key.
func (a *Authority) RSAHost(t testing.TB, names ...string) (chain, key []byte) {
	t.Helper()
	own, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return a.Issue(t, &x509.Certificate{DNSNames: names}, own)
}

// Issue issues a certificate like template for a key, and returns both as PEM.
func (a *Authority) Issue(t testing.TB, template *x509.Certificate, own crypto.Signer) (chain, key []byte) {
	t.Helper()
	chain, key, err := a.issueFor(template, own)
	if err != nil {
		t.Fatal(err)
	}
	return chain, key
}

// Revoke returns a certificate revocation list in PEM that revokes the chains' certificates and expires at until.
func (a *Authority) Revoke(t testing.TB, until time.Time, chains ...[]byte) []byte {
	t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: until}
	for _, chain := range chains {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{
			SerialNumber: Leaf(t, chain).SerialNumber, RevocationTime: time.Now().Add(-time.Minute)})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, a.cert, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return pemBlock("X509 CRL", der)
}

// Staple returns an OCSP response with a certificate's status that expires at until.
func (a *Authority) Staple(t testing.TB, chain []byte, status int, until time.Time) []byte {
	t.Helper()
	r, err := ocsp.CreateResponse(a.cert, a.cert, ocsp.Response{Status: status, SerialNumber: Leaf(t, chain).SerialNumber,
		ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: until, RevokedAt: time.Now().Add(-time.Hour)}, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Leaf returns the first certificate of a chain.
func Leaf(t testing.TB, chain []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(chain)
	if block == nil {
		t.Fatal("the chain has no certificate")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// issue makes a key and a certificate like template, and returns both as PEM.
func (a *Authority) issue(template *x509.Certificate) (chain, key []byte, err error) {
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	return a.issueFor(template, own)
}

// issueFor issues a certificate like template for a key, and returns both as PEM.
func (a *Authority) issueFor(template *x509.Certificate, own crypto.Signer) (chain, key []byte, err error) {
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		return nil, nil, err
	}
	template.NotBefore = time.Now().Add(-time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(12 * time.Hour)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, own.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	ownDER, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		return nil, nil, err
	}
	return pemBlock("CERTIFICATE", der), pemBlock("PRIVATE KEY", ownDER), nil
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
