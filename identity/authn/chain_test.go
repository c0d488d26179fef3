package authn

import (
	"context"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/identity/quota"
)

// A chain that was refused is looked at again after ten seconds, or when there are other roots; one that is too long
// never is.
func TestChains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, late := newAuthority(t), newAuthority(t)
		roots := a.pool()
		w := newTestAuthenticator(nil)
		w.options.Roots = func() *x509.CertPool { return roots }
		c := Credentials{Certificates: []*x509.Certificate{late.client(t, time.Hour, "spiffe://cluster.local/ns/shop/sa/web")}}
		accepted := func(what string, want bool) {
			t.Helper()
			if _, err := w.Authenticate(t.Context(), c); (err == nil) != want {
				t.Errorf("%s: %v", what, err)
			}
		}
		accepted("a stranger's", false)
		roots.AddCert(late.cert) // nobody does that: it shows that nobody looks
		accepted("at once", false)
		time.Sleep(badFor - 1)
		accepted("just before it is forgotten", false)
		time.Sleep(2 * time.Nanosecond)
		accepted("after a while", true)

		roots = a.pool()
		accepted("under other roots", false)
		roots = late.pool()
		accepted("under its own root", true)

		for len(c.Certificates) <= maxChain {
			c.Certificates = append(c.Certificates, late.cert)
		}
		w.is(t, c, ReasonMalformed, codes.Unauthenticated)
		c.Certificates = c.Certificates[:maxChain]
		accepted("as many as there may be", true)
		large := &x509.Certificate{Raw: make([]byte, maxChainBytes)}
		c.Certificates = append(c.Certificates[:1:1], large)
		w.is(t, c, ReasonMalformed, codes.Unauthenticated)
	})
}

// Certificates are checked in turns; who waits for his turn and goes is not checked.
func TestChecksAreInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		w := newTestAuthenticator(a.pool())
		c := Credentials{Certificates: []*x509.Certificate{a.client(t, time.Hour, "spiffe://cluster.local/ns/shop/sa/web")}}
		if err := w.checks.Wait(t.Context(), quota.Of(identity.Identity{}, nil)); err != nil { // somebody's takes long
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var errGone, errStayed error
		all.Go(func() { _, errGone = w.Authenticate(gone, c) })
		all.Go(func() { _, errStayed = w.Authenticate(t.Context(), c) })
		synctest.Wait()
		cancel()
		synctest.Wait()
		w.checks.Done()
		all.Wait()
		if errGone == nil || errStayed != nil {
			t.Errorf("%v, %v", errGone, errStayed)
		}
	})
}

// An issuer that hangs holds up nobody whose token is another one's.
func TestIssuerThatHangs(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	key := newKey(t)
	w := newTestAuthenticator(nil, NewIssuer(s.URL, "", []string{"istio-ca"}, time.Now))
	issuer := w.options.Issuers[0]
	t.Cleanup(issuer.client.CloseIdleConnections)
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for i := range maxAsked + 8 {
		c := claims(time.Hour, "istio-ca")
		c.Issuer, c.ID = s.URL, string(rune('a'+i))
		shown := Credentials{Token: token(t, key, c)}
		all.Go(func() {
			if _, err := w.Authenticate(ctx, shown); err == nil {
				t.Error("nobody knows its keys")
			}
		})
	}
	for len(issuer.turns) < maxAsked {
		runtime.Gosched()
	}
	good := token(t, key, claims(time.Hour, "istio-ca"))
	w.api.users[good] = "system:serviceaccount:shop:web"
	if _, err := w.Authenticate(t.Context(), Credentials{Token: good}); err != nil {
		t.Error(err)
	}
	cancel()
	all.Wait()
	close(release)
	for len(issuer.turns) > 0 { // the questions end with the time that an issuer has
		runtime.Gosched()
	}
}
