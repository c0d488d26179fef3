package wire_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	securityv1 "istio.io/api/security/v1alpha1"

	"github.com/pilotd/pilotd/loadtest/wire"
)

// certifier is a certificate service that signs for who shows the token of a service account.
type certifier struct {
	securityv1.UnimplementedIstioCertificateServiceServer
	by     tls.Certificate
	tokens map[string]string // the name in the certificate, by token
	asked  int
}

func (c *certifier) CreateCertificate(ctx context.Context,
	r *securityv1.IstioCertificateRequest) (*securityv1.IstioCertificateResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	b, _ := pem.Decode([]byte(r.Csr))
	request, err := x509.ParseCertificateRequest(b.Bytes)
	if err != nil {
		return nil, err
	}
	if c.tokens[strings.Join(md.Get("authorization"), "")] != request.URIs[0].String() {
		return nil, errors.New("another one's token")
	}
	c.asked++
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(2), URIs: request.URIs,
		NotAfter: time.Now().Add(time.Hour)}, c.by.Leaf, request.PublicKey, c.by.PrivateKey)
	if err != nil {
		return nil, err
	}
	text := func(der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	return &securityv1.IstioCertificateResponse{CertChain: []string{text(der), text(c.by.Certificate[0])}}, nil
}

// A client shows a certificate of its own account: one that the issuer has signed, or one that it was given for its
// token. It is made once.
func TestCertificatesOfAccounts(t *testing.T) {
	_, files := certify(t)
	pair, err := tls.LoadX509KeyPair(files[0], files[1])
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	shown := make(chan string, 10)
	g := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair},
		MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert,
		VerifyConnection: func(s tls.ConnectionState) error {
			for _, c := range s.PeerCertificates[:min(1, len(s.PeerCertificates))] {
				shown <- c.URIs[0].String()
			}
			return nil
		}})))
	service := &certifier{by: pair, tokens: map[string]string{"Bearer of web": "spiffe://td/ns/shop/sa/web"}}
	securityv1.RegisterIstioCertificateServiceServer(g, service)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	defer func() { g.Stop(); <-served }()

	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "shop.web"), []byte("of web\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "shop.thief"), []byte("of web\n"), 0o600))
	e, err := wire.At(l.Addr().String()).Secure(wire.Secrets{CA: files[0], ServerName: "server"})
	must(t, err)
	e.TokenFile = filepath.Join(dir, "{namespace}.{account}")
	signed, asked := e, e
	signed.Issuer, err = wire.SignedBy(files[0], files[1], "td")
	must(t, err)
	asked.Issuer, err = wire.AskedOf(e, "td")
	must(t, err)
	web := wire.Account{Namespace: "shop", Name: "web"}
	for name, e := range map[string]wire.Endpoint{"signed": signed, "asked for": asked} {
		for range 2 {
			conn, err := e.Dial(t.Context(), web)
			must(t, err)
			if got := <-shown; got != "spiffe://td/ns/shop/sa/web" {
				t.Errorf("%s: %s", name, got)
			}
			conn.Close()
		}
	}
	if service.asked != 1 {
		t.Errorf("it was asked for %d times", service.asked)
	}
	for _, other := range []string{"thief", "nobody"} {
		if _, err := asked.Dial(t.Context(), wire.Account{Namespace: "shop", Name: other}); err == nil {
			t.Errorf("%s has a certificate", other)
		}
	}
	if _, err := wire.AskedOf(wire.At("a:1"), "td"); err == nil {
		t.Error("it asks without TLS")
	}
	if _, err := wire.SignedBy(files[1], files[0], "td"); err == nil {
		t.Error("a key is taken for a certificate")
	}
}
