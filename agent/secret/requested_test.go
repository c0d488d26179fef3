package secret

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	securityv1 "istio.io/api/security/v1alpha1"

	"github.com/pilotd/pilotd/agent/upstream"
)

// authority signs as a script says.
type authority struct {
	securityv1.UnimplementedIstioCertificateServiceServer
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  string
	life time.Duration

	mu sync.Mutex
	// Guarded by mu. script has an answer for each request; behind its end all are signed.
	script []func(context.Context, []string) ([]string, error)
	asked  []time.Time
	tokens []string
	ids    []string
}

func newAuthority(t *testing.T) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, IsCA: true,
		NotBefore: time.Now(), NotAfter: time.Now().Add(1000 * time.Hour), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{t: t, key: key, cert: cert, life: 24 * time.Hour,
		pem: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

func (a *authority) CreateCertificate(ctx context.Context, q *securityv1.IstioCertificateRequest) (
	*securityv1.IstioCertificateResponse, error,
) {
	chain, scripted, err := a.take(ctx, q)
	if err == nil && scripted != nil {
		chain, err = scripted(ctx, chain)
	}
	return &securityv1.IstioCertificateResponse{CertChain: chain}, err
}

// take notes a request, and returns what is signed for it and what the script says.
func (a *authority) take(ctx context.Context, q *securityv1.IstioCertificateRequest) (
	chain []string, scripted func(context.Context, []string) ([]string, error), err error,
) {
	a.mu.Lock()
	defer a.mu.Unlock()
	md, _ := metadata.FromIncomingContext(ctx)
	a.asked = append(a.asked, time.Now())
	a.tokens = append(a.tokens, md.Get("authorization")...)
	if n := len(a.asked) - 1; n < len(a.script) {
		scripted = a.script[n]
	}
	chain, err = a.sign(q)
	return chain, scripted, err
}

func (a *authority) sign(q *securityv1.IstioCertificateRequest) ([]string, error) {
	b, _ := pem.Decode([]byte(q.Csr))
	csr, err := x509.ParseCertificateRequest(b.Bytes)
	if err != nil {
		return nil, err
	}
	for _, u := range csr.URIs {
		a.ids = append(a.ids, u.String())
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(2), URIs: csr.URIs,
		NotBefore: time.Now(), NotAfter: time.Now().Add(a.life)}, a.cert, csr.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return []string{string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), a.pem}, nil
}

// serve serves the authority and returns what asks it.
func (a *authority) serve(token string) *Requested {
	l := bufconn.Listen(1 << 16)
	g := grpc.NewServer()
	securityv1.RegisterIstioCertificateServiceServer(g, a)
	go func() { _ = g.Serve(l) }()
	a.t.Cleanup(g.Stop)
	return &Requested{ID: "spiffe://td/ns/shop/sa/web", Life: 24 * time.Hour, Grace: 0.5, Jitter: 0.01,
		Log: slog.New(slog.DiscardHandler), Key: KeyKind{Curve: elliptic.P256()},
		Server: upstream.Server{Address: "ca", Name: "ca", Plaintext: true, Token: token,
			Dialer: func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }}}
}

func token(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A CA that fails, hangs or answers what cannot be used is asked again, later each time; then there is a certificate.
func TestAuthorityInTrouble(t *testing.T) {
	path := token(t)
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		hang := func(ctx context.Context, _ []string) ([]string, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		a.script = []func(context.Context, []string) ([]string, error){
			func(context.Context, []string) ([]string, error) { return nil, status.Error(codes.Unavailable, "away") },
			func(context.Context, []string) ([]string, error) { return nil, status.Error(codes.Internal, "broken") },
			hang,
			func(_ context.Context, c []string) ([]string, error) { return c[:1], nil },
			func(_ context.Context, c []string) ([]string, error) { return []string{c[1], c[0]}, nil },
			func(_ context.Context, c []string) ([]string, error) { return []string{c[0], "no PEM"}, nil },
		}
		r := a.serve(path)
		r.Output = t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.Run(ctx)
		m, changed := r.Newest.Get()
		if m != nil {
			t.Fatal("there is one already")
		}
		<-changed
		m, _ = r.Newest.Get()
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.asked) != len(a.script)+1 {
			t.Errorf("asked %d times, want %d", len(a.asked), len(a.script)+1)
		}
		for i, want := range []time.Duration{firstPause, 2 * firstPause, answerTime + 4*firstPause, 8 * firstPause} {
			got := a.asked[i+1].Sub(a.asked[i])
			if least := want - (1<<i)*firstPause/2; got < least || got > want+time.Second {
				t.Errorf("request %d came after %v, want %v to %v", i+1, got, least, want)
			}
		}
		if a.tokens[0] != "Bearer one" || a.ids[0] != r.ID {
			t.Error(a.tokens, a.ids)
		}
		if string(m.Roots) != a.pem || m.NotAfter.Before(time.Now().Add(23*time.Hour)) {
			t.Error(m)
		}
		synctest.Wait()
		written, err := fromDir(r.Output)
		if err != nil || !bytes.Equal(written.Key, m.Key) {
			t.Error("it is not written:", err)
		}
		if info, err := os.Stat(filepath.Join(r.Output, upstream.KeyFile)); err != nil || info.Mode().Perm() != 0o600 {
			t.Error("others may read the key:", info.Mode(), err)
		}
	})
}

// At half of what is left, give or take a hundredth, there is a new certificate with a new key, asked for with the
// token that the pod has then. While the CA is away the old one stays.
func TestRotation(t *testing.T) {
	path := token(t)
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		r := a.serve(path)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.Run(ctx)
		time.Sleep(time.Minute)
		first, changed := r.Newest.Get()
		away := func(context.Context, []string) ([]string, error) { return nil, status.Error(codes.Unavailable, "away") }
		a.mu.Lock()
		a.script = []func(context.Context, []string) ([]string, error){nil, away, away}
		a.mu.Unlock()
		if err := os.WriteFile(path, []byte("two"), 0o600); err != nil {
			t.Fatal(err)
		}
		<-changed
		second, _ := r.Newest.Get()
		a.mu.Lock()
		defer a.mu.Unlock()
		after := a.asked[1].Sub(a.asked[0])
		if after < 11*time.Hour+45*time.Minute || after > 12*time.Hour+15*time.Minute {
			t.Error("asked again after", after)
		}
		if bytes.Equal(first.Key, second.Key) || a.tokens[1] != "Bearer two" || len(a.asked) != 4 {
			t.Error("the key or the token is the old one, or it was not asked again", a.tokens)
		}
	})
}

// Keys come in each form that can be asked for.
func TestKeyKinds(t *testing.T) {
	for _, k := range []KeyKind{{}, {Bits: 3072}, {Curve: elliptic.P384()}, {PKCS8: true},
		{Curve: elliptic.P256(), PKCS8: true}} {
		key, text, err := k.generate()
		if err != nil {
			t.Fatal(err)
		}
		csr, err := request(key, "spiffe://td/ns/a/sa/b")
		if err != nil {
			t.Fatal(err)
		}
		b, _ := pem.Decode(csr)
		parsed, err := x509.ParseCertificateRequest(b.Bytes)
		if err != nil || parsed.CheckSignature() != nil || len(parsed.URIs) != 1 {
			t.Error(parsed, err)
		}
		der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1),
			NotAfter: time.Now().Add(time.Hour)}, &x509.Certificate{}, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		if _, err := newMaterial(chain, text, chain); err != nil {
			t.Errorf("%+v: %v", k, err)
		}
	}
}

func signable(csr string) *securityv1.IstioCertificateRequest {
	return &securityv1.IstioCertificateRequest{Csr: csr}
}
