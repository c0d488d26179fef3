package secure

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/identity/authn"
	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// When the certificate or the token of a stream has expired, no secret is sent on it any more, neither one that has
// changed nor one that is asked for anew; clusters go on. Whoever comes again and proves who it is has them all.
func TestProofsThatEnd(t *testing.T) {
	const name = "spiffe://cluster.local/ns/shop/sa/lister"
	for kind, shown := range map[string]func(*house) (token string, a agent){
		"certificate": func(h *house) (string, agent) {
			return "", agent{cert: h.root.client(h.t, name, 10*time.Minute)}
		},
		"token": func(h *house) (string, agent) {
			token := h.token(10 * time.Minute)
			h.tokens[token] = "system:serviceaccount:shop:lister"
			return token, agent{}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			inHouse(t, func(h *house) { proofEnds(h, shown) }, func(h *house) { h.rights = newGrants("shop/lister") })
		})
	}
}

// token returns a token of an API server that is good for a while.
func (h *house) token(life time.Duration) string {
	h.t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: newKey(h.t)}, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(jwt.Claims{Audience: jwt.Audience{"istio-ca"},
		Expiry: jwt.NewNumericDate(time.Now().Add(life))}).Serialize()
	if err != nil {
		h.t.Fatal(err)
	}
	return token
}

// serve adds a service, which makes a cluster.
func (h *house) serve(name string) {
	h.streams.Store.Apply([]ingest.Event{{Source: "test", Key: value.ObjectKey{Kind: value.KindService, Namespace: "shop",
		Name: name}, Object: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}}}})
}

func proofEnds(h *house, shown func(*house) (string, agent)) {
	g := newGate(h, nil)
	g.rotate("shop", "a")
	g.rotate("shop", "b")
	begin := func() *stream {
		s := h.open(shown(h))
		s.send(&discoveryv3.DeltaDiscoveryRequest{Node: node("router", "shop", "lister"), TypeUrl: xdstype.ClusterURL})
		s.next(xdstype.ClusterURL)
		return s
	}
	ask := func(s *stream, names ...string) {
		s.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xdstype.SecretURL, ResourceNamesSubscribe: names})
	}
	has := func(r *discoveryv3.DeltaDiscoveryResponse, secret string) bool {
		for _, resource := range r.Resources {
			if bytes.Contains(resource.GetResource().GetValue(), []byte(g.current[secret])) {
				return true
			}
		}
		return false
	}
	s := begin()
	defer s.close()
	ask(s, "kubernetes://a")
	if r := s.next(xdstype.SecretURL); !has(r, "shop/a") {
		h.t.Fatal("it has not got its secret:", r.RemovedResources)
	}
	time.Sleep(9 * time.Minute)
	g.rotate("shop", "a")
	if r := s.next(xdstype.SecretURL); !has(r, "shop/a") {
		h.t.Error("before its end a proof counts")
	}

	time.Sleep(2 * time.Minute)
	g.rotate("shop", "a")
	synctest.Wait()
	ask(s, "kubernetes://b")
	if r := s.next(xdstype.SecretURL); len(r.Resources) != 0 || !slices.Equal(r.RemovedResources,
		[]string{"kubernetes://b"}) {
		h.t.Error("it is not told that it gets nothing, so that nothing waits:", r)
	}
	for _, service := range []string{"first", "second"} { // a secret would come before the second
		h.serve(service)
		s.next(xdstype.ClusterURL)
		synctest.Wait()
	}
	if n := testutil.ToFloat64(h.streams.Metrics.Withheld.WithLabelValues("lapsed")); n != 1 {
		h.t.Errorf("%v streams are counted whose proof has ended, want 1", n)
	}

	again := begin()
	defer again.close()
	ask(again, "kubernetes://a", "kubernetes://b")
	for got := 0; got < 2; {
		r := again.next(xdstype.SecretURL)
		if got += len(r.Resources); has(r, "shop/a") != has(r, "shop/b") && len(r.Resources) > 1 {
			h.t.Error("it has not got its secrets")
		}
	}
}

// hung is an API server that takes questions and never answers.
type hung struct{}

// Review implements authn.Reviewer.
func (hung) Review(ctx context.Context, _ string, _ []string) (authn.Review, error) {
	<-ctx.Done()
	return authn.Review{}, ctx.Err()
}

// Whatever hangs behind the port, who asks for a certificate or a stream is answered in time, with a code on which
// agents come again.
func TestNobodyWaitsForEver(t *testing.T) {
	inHouse(t, func(h *house) {
		conn := h.dial(agent{})
		defer conn.Close()
		begin := time.Now()
		_, err := certificate(conn, with("web"), csr(t, newKey(t), "spiffe://cluster.local/ns/shop/sa/web"))
		if status.Code(err) != codes.Unavailable || time.Since(begin) > 30*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		s := h.open("web", agent{})
		begin = time.Now()
		s.ends(codes.Unavailable)
		if d := time.Since(begin); d > 30*time.Second {
			t.Error("a stream waits for", d)
		}
	}, func(h *house) { h.reviewer = hung{} })
}

// revocable is an API server that may take back what it has said, or not answer.
type revocable struct {
	mu sync.Mutex
	// Guarded by mu.
	gone, away bool
	asked      int
}

// Review implements authn.Reviewer.
func (r *revocable) Review(context.Context, string, []string) (authn.Review, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked++; r.away {
		return authn.Review{}, errors.New("away")
	}
	return authn.Review{Good: !r.gone, User: "system:serviceaccount:shop:lister"}, nil
}

func (r *revocable) set(change func(*revocable)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
}

// When the API server does not vouch for the token of a stream any more, no secret is sent on it a few minutes later;
// clusters go on, and who comes again with the token is refused. An API server that does not answer revokes nothing,
// and it is asked only about the tokens of clients that ask for secrets, every five minutes.
func TestRevokedToken(t *testing.T) {
	r := &revocable{}
	inHouse(t, func(h *house) {
		g := newGate(h, nil)
		g.rotate("shop", "a")
		token := h.token(10 * time.Hour)
		open := func() *stream {
			s := h.open(token, agent{})
			s.send(&discoveryv3.DeltaDiscoveryRequest{Node: node("router", "shop", "lister"), TypeUrl: xdstype.ClusterURL})
			s.next(xdstype.ClusterURL)
			return s
		}
		other := open() // asks for no secret
		defer other.close()
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if r.asked != 1 {
			t.Errorf("the API server was asked %d times about a stream without secrets", r.asked)
		}
		s := open()
		defer s.close()
		s.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xdstype.SecretURL, ResourceNamesSubscribe: []string{"kubernetes://a"}})
		sent := func() bool { return len(s.next(xdstype.SecretURL).Resources) == 1 }
		if !sent() {
			t.Fatal("it has not got its secret")
		}
		r.set(func(r *revocable) { r.away = true })
		time.Sleep(12 * time.Minute)
		g.rotate("shop", "a")
		if !sent() {
			t.Error("a server that does not answer has revoked the token")
		}
		r.set(func(r *revocable) { r.away, r.asked = false, 0 })
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if r.asked < 3 || r.asked > 4 {
			t.Errorf("the API server was asked %d times in twenty minutes", r.asked)
		}
		r.set(func(r *revocable) { r.gone = true })
		time.Sleep(6*time.Minute + 20*time.Second)
		g.rotate("shop", "a")
		synctest.Wait()
		for _, service := range []string{"first", "second"} { // a secret would come before the second
			h.serve(service)
			s.next(xdstype.ClusterURL)
			synctest.Wait()
		}
		again := h.open(token, agent{})
		again.ends(codes.Unauthenticated)
		s.close()
		synctest.Wait()
		if n := len(h.secure.vigil.proofs); n != 0 {
			t.Errorf("%d tokens are asked about still", n)
		}
	}, func(h *house) { h.rights, h.reviewer = newGrants("shop/lister"), r })
}
