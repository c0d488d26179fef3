package wire

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	securityv1 "istio.io/api/security/v1alpha1"
)

// Account is the service account that a client runs as.
type Account struct{ Namespace, Name string }

// in replaces {namespace} and {account} in a text by the account's.
func (a Account) in(text string) string {
	return strings.NewReplacer("{namespace}", a.Namespace, "{account}", a.Name).Replace(text)
}

// id returns the account's SPIFFE ID.
func (a Account) id(trustDomain string) (*url.URL, error) {
	return url.Parse("spiffe://" + trustDomain + "/ns/" + a.Namespace + "/sa/" + a.Name)
}

// Issuer obtains one certificate for each account. Safe for concurrent use.
type Issuer struct {
	// Immutable.
	issue func(context.Context, Account, *ecdsa.PrivateKey) ([][]byte, error)

	mu sync.Mutex
	// Guarded by mu.
	issued map[Account]*issued
}

// issued is the certificate of one account.
type issued struct {
	mu sync.Mutex
	// Guarded by mu.
	certificate *tls.Certificate // nil until it is issued
}

func newIssuer(issue func(context.Context, Account, *ecdsa.PrivateKey) ([][]byte, error)) *Issuer {
	return &Issuer{issue: issue, issued: map[Account]*issued{}}
}

// of returns an account's certificate. Concurrent callers for the same account wait for one request.
func (i *Issuer) of(ctx context.Context, a Account) (*tls.Certificate, error) {
	i.mu.Lock()
	own := i.issued[a]
	if own == nil {
		own = &issued{}
		i.issued[a] = own
	}
	i.mu.Unlock()
	own.mu.Lock()
	defer own.mu.Unlock()
	if own.certificate != nil {
		return own.certificate, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	chain, err := i.issue(ctx, a, key)
	if err != nil {
		return nil, fmt.Errorf("a certificate for %s/%s: %w", a.Namespace, a.Name, err)
	}
	own.certificate = &tls.Certificate{Certificate: chain, PrivateKey: key}
	return own.certificate, nil
}

// SignedBy returns an Issuer that signs with the authority in two files.
func SignedBy(certFile, keyFile, trustDomain string) (*Issuer, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	return newIssuer(func(_ context.Context, a Account, key *ecdsa.PrivateKey) ([][]byte, error) {
		id, err := a.id(trustDomain)
		if err != nil {
			return nil, err
		}
		serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
		if err != nil {
			return nil, err
		}
		now := time.Now()
		der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: serial, URIs: []*url.URL{id},
			NotBefore: now.Add(-time.Minute), NotAfter: now.Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, pair.Leaf, &key.PublicKey, pair.PrivateKey)
		return append([][]byte{der}, pair.Certificate...), err
	}), nil
}

// AskedOf returns an Issuer that asks the certificate service of an endpoint, as Istio's agents do: with the account's
// token, over a connection of its own.
func AskedOf(e Endpoint, trustDomain string) (*Issuer, error) {
	if e.TLS == nil || e.TokenFile == "" {
		return nil, errors.New("certificates are asked for over TLS, with a token")
	}
	return newIssuer(func(ctx context.Context, a Account, key *ecdsa.PrivateKey) ([][]byte, error) {
		id, err := a.id(trustDomain)
		if err != nil {
			return nil, err
		}
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{URIs: []*url.URL{id}}, key)
		if err != nil {
			return nil, err
		}
		header, err := e.Header(a)
		if err != nil {
			return nil, err
		}
		conn, err := grpc.NewClient("passthrough:"+e.Address, grpc.WithTransportCredentials(credentials.NewTLS(e.TLS)))
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+header.Token)
		client := securityv1.NewIstioCertificateServiceClient(conn)
		answer, err := client.CreateCertificate(ctx, &securityv1.IstioCertificateRequest{
			Csr: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), ValidityDuration: 86400})
		if err != nil {
			return nil, err
		}
		return chainOf(answer.CertChain)
	}), nil
}

// chainOf returns the chain that a client presents: what was issued, without the roots, which are in the last text.
func chainOf(texts []string) (out [][]byte, err error) {
	if len(texts) < 2 {
		return nil, fmt.Errorf("the answer has %d certificates; want a chain", len(texts))
	}
	for _, text := range texts[:len(texts)-1] {
		b, _ := pem.Decode([]byte(text))
		if b == nil {
			return nil, errors.New("the answer is not in PEM")
		}
		out = append(out, b.Bytes)
	}
	return out, nil
}
