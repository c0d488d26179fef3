package authn

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/identity/quota"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// apiServer is a Reviewer that vouches for the tokens that it knows.
type apiServer struct {
	mu sync.Mutex
	// Guarded by mu.
	users map[string]string // by token
	err   error
	asked int
	gate  chan struct{} // answers wait for it, unless nil
}

func (s *apiServer) Review(ctx context.Context, token string, _ []string) (Review, error) {
	s.mu.Lock()
	s.asked++
	gate := s.gate
	s.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return Review{}, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	user, ok := s.users[token]
	return Review{Good: ok, User: user}, s.err
}

func (s *apiServer) asks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// authority signs clients' certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newAuthority(t testing.TB) *authority {
	a := &authority{key: newKey(t)}
	a.cert = a.sign(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)})
	return a
}

func (a *authority) sign(t testing.TB, c *x509.Certificate) *x509.Certificate {
	t.Helper()
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	parent, key := a.cert, a.key
	if parent == nil {
		parent = c
	} else if c.PublicKey == nil {
		key = newKey(t)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	out, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// client returns a client's certificate with these names.
func (a *authority) client(t testing.TB, life time.Duration, names ...string) *x509.Certificate {
	t.Helper()
	c := &x509.Certificate{NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, n := range names {
		u, err := url.Parse(n)
		if err != nil {
			t.Fatal(err)
		}
		c.URIs = append(c.URIs, u)
	}
	return a.sign(t, c)
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// testAuthenticator is an Authenticator with an API server, and what it counted.
type testAuthenticator struct {
	*Authenticator
	api     *apiServer
	refused map[Reason]int
}

func newTestAuthenticator(roots *x509.CertPool, issuers ...*Issuer) *testAuthenticator {
	w := &testAuthenticator{api: &apiServer{users: map[string]string{}}, refused: map[Reason]int{}}
	var mu sync.Mutex
	w.Authenticator = New(Options{
		TrustDomains: func() []string { return []string{"cluster.local", "old.local"} },
		Roots:        func() *x509.CertPool { return roots }, Tokens: w.api, Audiences: []string{"istio-ca"},
		Issuers: issuers, ClusterID: "Kubernetes", Now: time.Now,
		Refused: func(r Reason) { mu.Lock(); defer mu.Unlock(); w.refused[r]++ },
	})
	return w
}

// is fails unless the client is refused for the reason, with the code, and counted.
func (w *testAuthenticator) is(t testing.TB, c Credentials, reason Reason, code codes.Code) {
	t.Helper()
	before := w.refused[reason]
	_, err := w.Authenticate(t.Context(), c)
	var r *Refusal
	if !errors.As(err, &r) || r.Reason != reason || status.Code(err) != code || w.refused[reason] != before+1 {
		t.Errorf("got %v (counted %v), want %s", err, w.refused, reason)
	}
}

// A certificate proves an identity if a root of the mesh signed it for a client, for this time and this trust domain.
func TestCertificates(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	w := newTestAuthenticator(a.pool())
	const web = "spiffe://cluster.local/ns/shop/sa/web"
	for _, name := range []string{web, "spiffe://old.local/ns/shop/sa/web"} {
		cert := a.client(t, time.Minute, name)
		p, err := w.Authenticate(t.Context(), Credentials{Certificates: []*x509.Certificate{cert}})
		if err != nil || p.Identity.String() != name || !p.Until.Equal(cert.NotAfter) || !p.Proven() {
			t.Errorf("%+v, %v", p, err)
		}
	}
	server := &x509.Certificate{NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		URIs: a.client(t, time.Hour, web).URIs, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, c := range []struct {
		name   string
		cert   *x509.Certificate
		reason Reason
	}{
		{"expired", a.client(t, -time.Minute, web), ReasonExpired},
		{"of a stranger", stranger.client(t, time.Hour, web), ReasonCertificate},
		{"of a server", a.sign(t, server), ReasonCertificate},
		{"of another trust domain", a.client(t, time.Hour, "spiffe://evil.local/ns/shop/sa/web"), ReasonTrustDomain},
		{"without a name", a.client(t, time.Hour), ReasonMalformed},
		{"with two names", a.client(t, time.Hour, web, "spiffe://cluster.local/ns/bank/sa/teller"), ReasonMalformed},
		{"of no service account", a.client(t, time.Hour, "spiffe://cluster.local/web"), ReasonMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			// A good token beside it does not help.
			w.api.users["good"] = "system:serviceaccount:shop:web"
			w.is(t, Credentials{Certificates: []*x509.Certificate{c.cert}, Token: "good"}, c.reason, codes.Unauthenticated)
		})
	}
}

// token returns a signed token with these claims.
func token(t testing.TB, key any, claims jwt.Claims) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func claims(life time.Duration, audience string) jwt.Claims {
	return jwt.Claims{Issuer: "https://issuer", Subject: "system:serviceaccount:shop:web",
		Audience: jwt.Audience{audience}, Expiry: jwt.NewNumericDate(time.Now().Add(life))}
}

// What an API server says of a token decides; what the token says of itself only where that speaks against it.
func TestTokens(t *testing.T) {
	w, key := newTestAuthenticator(x509.NewCertPool()), newKey(t)
	good := token(t, key, claims(time.Hour, "istio-ca"))
	w.api.users[good] = "system:serviceaccount:shop:web"
	p, err := w.Authenticate(t.Context(), Credentials{Token: good, ClusterID: "Kubernetes"})
	if err != nil || p.Identity != (identity.Identity{TrustDomain: "cluster.local", Namespace: "shop",
		ServiceAccount: "web"}) || time.Until(p.Until) < 50*time.Minute {
		t.Fatalf("%+v, %v", p, err)
	}
	person, late := token(t, newKey(t), claims(time.Hour, "istio-ca")), token(t, key, claims(-time.Second, "istio-ca"))
	w.api.users[person] = "admin"
	w.api.users[late], w.api.users["opaque"] = "system:serviceaccount:shop:web", "system:serviceaccount:shop:web"
	other := token(t, key, claims(time.Hour, "https://kubernetes.default.svc"))
	w.api.users[other] = "system:serviceaccount:shop:web"
	for name, c := range map[string]struct {
		with   Credentials
		reason Reason
	}{
		"nothing":                {Credentials{}, ReasonMissing},
		"a foreign signature":    {Credentials{Token: token(t, newKey(t), claims(time.Hour, "istio-ca"))}, ReasonToken},
		"a person":               {Credentials{Token: person}, ReasonToken},
		"expired":                {Credentials{Token: late}, ReasonExpired},
		"of another audience":    {Credentials{Token: other}, ReasonAudience},
		"of another cluster":     {Credentials{Token: good, ClusterID: "elsewhere"}, ReasonCluster},
		"too long":               {Credentials{Token: string(make([]byte, maxToken+1))}, ReasonMalformed},
		"not a token, not known": {Credentials{Token: "nonsense"}, ReasonToken},
	} {
		t.Run(name, func(t *testing.T) { w.is(t, c.with, c.reason, codes.Unauthenticated) })
	}
	if _, err := w.Authenticate(t.Context(), Credentials{Token: "opaque"}); err != nil {
		t.Error("a token that is no JWT is for the API server to know:", err)
	}
}

// An answer is kept for a minute, a refusal for ten seconds, and no answer of an API server that is away is kept.
func TestAnswersAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, key := newTestAuthenticator(nil), newKey(t)
		good := token(t, key, claims(90*time.Second, "istio-ca"))
		w.api.users[good] = "system:serviceaccount:shop:web"
		ask := func(c Credentials, want int) {
			t.Helper()
			_, _ = w.Authenticate(t.Context(), c)
			if n := w.api.asks(); n != want {
				t.Fatalf("the API server was asked %d times, want %d", n, want)
			}
		}
		ask(Credentials{Token: good}, 1)
		ask(Credentials{Token: good}, 1)
		time.Sleep(goodFor + time.Second)
		ask(Credentials{Token: good}, 2)
		w.api.users = nil // it is revoked
		time.Sleep(28 * time.Second)
		if _, err := w.Authenticate(t.Context(), Credentials{Token: good}); err != nil {
			t.Error("an answer is believed for a minute:", err)
		}
		time.Sleep(2 * time.Second)
		w.is(t, Credentials{Token: good}, ReasonExpired, codes.Unauthenticated) // never beyond its life

		bad := Credentials{Token: "bad"}
		ask(bad, 3)
		ask(bad, 3)
		time.Sleep(badFor + time.Second)
		ask(bad, 4)
		w.api.err = errors.New("away")
		time.Sleep(badFor + time.Second)
		w.is(t, bad, ReasonUnavailable, codes.Unavailable)
		ask(bad, 6)
	})
}

// A token is asked about once for all who show it at the same time, and its first caller may leave. A bounded number of
// tokens are asked about at once; the rest wait, and are told in time when nobody answers.
func TestAskingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestAuthenticator(nil)
		w.api.gate = make(chan struct{})
		w.api.users["same"] = "system:serviceaccount:shop:web"
		impatient, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := w.Authenticate(impatient, Credentials{Token: "same"}); status.Code(err) != codes.Unavailable {
				t.Error(err)
			}
		})
		synctest.Wait()
		for range 100 {
			all.Go(func() {
				if _, err := w.Authenticate(t.Context(), Credentials{Token: "same"}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		leave()
		synctest.Wait()
		if n := w.api.asks(); n != 1 {
			t.Errorf("the API server was asked %d times", n)
		}
		for i := range 3 * maxAsked {
			all.Go(func() {
				_, err := w.Authenticate(t.Context(), Credentials{Token: string(rune('a' + i))})
				if c := status.Code(err); c != codes.Unauthenticated && c != codes.Unavailable {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if n := w.api.asks(); n != maxAsked {
			t.Errorf("%d tokens are asked about at once", n)
		}
		close(w.api.gate)
		all.Wait()

		w.api.gate = make(chan struct{}) // nobody answers
		begin := time.Now()
		_, err := w.Authenticate(t.Context(), Credentials{Token: "unanswered"})
		if status.Code(err) != codes.Unavailable || time.Since(begin) > askTime {
			t.Error(err, time.Since(begin))
		}
	})
}

// An address from which many bad tokens come is answered without asking, but for what is known already; other addresses
// are not concerned.
func TestBadTokensAreCountedByAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestAuthenticator(nil)
		w.options.BadTokens = quota.NewRate(1, time.Now)
		w.api.users["good"], w.api.users["new"] = "system:serviceaccount:shop:web", "system:serviceaccount:shop:new"
		bad := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}
		ask := func(token string, from net.Addr) error {
			_, err := w.Authenticate(t.Context(), Credentials{Token: token, From: from})
			return err
		}
		if err := ask("good", bad); err != nil {
			t.Fatal(err)
		}
		for i := range 15 {
			want := codes.Unauthenticated
			if i >= 10 {
				want = codes.ResourceExhausted
			}
			if err := ask(string(rune('a'+i)), bad); status.Code(err) != want {
				t.Errorf("token %d: %v, want %s", i, err, want)
			}
		}
		if n := w.api.asks(); n != 11 || w.refused[ReasonOften] != 5 {
			t.Errorf("the API server was asked %d times, %v", n, w.refused)
		}
		if err := ask("good", bad); err != nil {
			t.Error("one that is known:", err)
		}
		if err := ask("new", &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2)}); err != nil {
			t.Error("another address:", err)
		}
		time.Sleep(time.Second)
		if err := ask("new", bad); err != nil {
			t.Error("later:", err)
		}
	})
}

// Nothing is decided while trust domain or roots are not known.
func TestBeforeItIsKnown(t *testing.T) {
	a := newAuthority(t)
	w := newTestAuthenticator(nil)
	cert := []*x509.Certificate{a.client(t, time.Hour, "spiffe://cluster.local/ns/shop/sa/web")}
	w.is(t, Credentials{Certificates: cert}, ReasonUnavailable, codes.Unavailable)
	w.options.TrustDomains = func() []string { return nil }
	w.is(t, Credentials{Token: "x"}, ReasonUnavailable, codes.Unavailable)
}

// FuzzToken shows whatever it is given: nothing but a token that the API server knows is let in.
func FuzzToken(f *testing.F) {
	f.Add("a.b.c")
	f.Add("eyJhbGciOiJub25lIn0.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6YTpiIn0.")
	f.Add(token(f, newKey(f), claims(time.Hour, "istio-ca")))
	w := newTestAuthenticator(nil)
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := w.Authenticate(t.Context(), Credentials{Token: s}); err == nil || p.Proven() {
			t.Errorf("%q is %+v", s, p)
		}
	})
}
