package secure

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	"github.com/pilotd/pilotd/cmd/pilotd/discovery"
	"github.com/pilotd/pilotd/identity/authn"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/secrets"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tokens is an API server that knows some.
type tokens map[string]string

// Review implements authn.Reviewer.
func (t tokens) Review(_ context.Context, token string, _ []string) (authn.Review, error) {
	if t == nil {
		return authn.Review{}, errors.New("away")
	}
	user, ok := t[token]
	return authn.Review{Good: ok, User: user}, nil
}

// root is an authority that a test makes, with its key.
type root struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newRoot(t testing.TB, name string) *root {
	t.Helper()
	r := &root{key: newKey(t)}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
		IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &r.key.PublicKey, r.key)
	if err != nil {
		t.Fatal(err)
	}
	if r.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	r.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return r
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// client returns a client's certificate.
func (r *root) client(t testing.TB, name string, life time.Duration) *tls.Certificate {
	t.Helper()
	u, err := url.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(2), URIs: []*url.URL{u},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, r.cert, &key.PublicKey, r.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// house is pilotd with its secure port, in memory.
type house struct {
	t        *testing.T
	root     *root
	dir      string
	tokens   tokens
	reviewer authn.Reviewer // nil: tokens
	secure   *Server
	streams  *discovery.Server
	tick     chan time.Time // has files read again
	log      bytes.Buffer   // what is logged; the handler writes one line at a time
	rights   secrets.Rights // nil: whoever is of the namespace may list Secrets
	listener *bufconn.Listener
}

// inHouse runs a test with a house, in a bubble where time passes only when all wait.
func inHouse(t *testing.T, f func(*house), settings ...func(*house)) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{t: t, root: newRoot(t, "root"), dir: t.TempDir(), tick: make(chan time.Time),
			listener: bufconn.Listen(1 << 20), tokens: tokens{"web": "system:serviceaccount:shop:web",
				"gateway": "system:serviceaccount:istio-system:gateway", "teller": "system:serviceaccount:bank:teller"}}
		for _, set := range settings {
			set(h)
		}
		h.plug(h.root, h.root.pem)
		stop := h.start()
		defer stop()
		f(h)
	})
}

// plug puts an authority into the directory.
func (h *house) plug(r *root, roots []byte) {
	h.t.Helper()
	key, err := x509.MarshalECPrivateKey(r.key)
	if err != nil {
		h.t.Fatal(err)
	}
	for name, text := range map[string][]byte{"ca-cert.pem": r.pem, "root-cert.pem": roots,
		"ca-key.pem": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key})} {
		if err := os.WriteFile(filepath.Join(h.dir, name), text, 0o600); err != nil {
			h.t.Fatal(err)
		}
	}
}

// start serves until stop is called.
func (h *house) start() (stop func()) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log := slog.New(slog.NewTextHandler(&h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h.streams = discovery.New(discovery.Options{Shards: 1, Sources: []string{"test"}, Log: log, Build: "test",
		Rights:       h.rights,
		Authenticate: func(ctx context.Context) (proxy.Peer, error) { return h.secure.Peer(ctx) },
		Keepalive:    keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second},
		Enforcement:  keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}})
	if h.reviewer == nil {
		h.reviewer = h.tokens
	}
	var err error
	h.secure, err = New(Options{TrustDomains: h.streams.TrustDomains, Tokens: h.reviewer, ClusterID: "Kubernetes",
		Audiences: []string{"istio-ca"}, CADir: h.dir, Hosts: []string{"istiod.istio-system.svc", "istio-pilot.istio-system.svc"},
		Life: 24 * time.Hour, MaxLife: 90 * 24 * time.Hour, Signers: 1, Now: time.Now, Log: log,
		Every: func(d time.Duration) <-chan time.Time {
			if d == vigilEvery {
				return time.Tick(d)
			}
			return h.tick
		}})
	if err != nil {
		h.t.Fatal(err)
	}
	h.secure.Metrics(h.streams.Metrics)
	door := h.secure.Listen(h.listener)
	g := h.streams.Streams.GRPC(door.Credentials(credentials.NewTLS(h.secure.TLS())))
	h.secure.Register(g, h.streams.Streams)
	var all sync.WaitGroup
	all.Go(func() { h.streams.Run(ctx) })
	all.Go(func() {
		if err := h.secure.Run(ctx); err != nil {
			h.t.Error(err)
		}
	})
	h.streams.Store.Synced("test")
	synctest.Wait()
	all.Go(func() {
		if err := g.Serve(door); err != nil {
			h.t.Error(err)
		}
	})
	return func() { g.Stop(); cancel(); all.Wait() }
}

// agent is what a stock agent has to connect with.
type agent struct {
	host  string
	roots []byte
	cert  *tls.Certificate
	max   uint16 // version of TLS
}

// dial connects as the agent does.
func (h *house) dial(a agent) *grpc.ClientConn {
	h.t.Helper()
	if a.host == "" {
		a.host = "istiod.istio-system.svc"
	}
	if a.roots == nil {
		a.roots = h.root.pem
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.roots)
	cfg := &tls.Config{ServerName: a.host, RootCAs: pool, MaxVersion: a.max}
	if a.cert != nil {
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return a.cert, nil }
	}
	conn, err := grpc.NewClient("passthrough:"+a.host, grpc.WithTransportCredentials(credentials.NewTLS(cfg)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithInitialWindowSize(1<<20),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return h.listener.DialContext(ctx) }))
	if err != nil {
		h.t.Fatal(err)
	}
	return conn
}

// with returns a context with the metadata of an agent's call.
func with(token string) context.Context {
	md := metadata.Pairs("clusterid", "Kubernetes")
	if token != "" {
		md.Set("authorization", "Bearer "+token)
	}
	return metadata.NewOutgoingContext(context.Background(), md)
}
