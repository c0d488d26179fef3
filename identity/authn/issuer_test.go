package authn

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"google.golang.org/grpc/codes"
)

// issuing is an issuer of tokens on this machine.
type issuing struct {
	*httptest.Server
	fetched atomic.Int32
	away    atomic.Bool
}

func newIssuing(t *testing.T, key any) *issuing {
	s := &issuing{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key, KeyID: "1", Algorithm: "ES256"}}}
		switch {
		case s.away.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case r.URL.Path == "/.well-known/openid-configuration":
			answer = map[string]any{"issuer": s.URL, "jwks_uri": s.URL + "/keys"}
		default:
			s.fetched.Add(1)
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// A token of a known issuer is checked with its keys, wherever these are said to be; no API server is asked.
func TestIssuers(t *testing.T) {
	key := newKey(t)
	for name, path := range map[string]string{"asked where its keys are": "", "with keys at a known place": "/keys"} {
		t.Run(name, func(t *testing.T) {
			s := newIssuing(t, key.Public())
			if path != "" {
				path = s.URL + path
			}
			w := newTestAuthenticator(nil, NewIssuer(s.URL, path, []string{"mesh", "istio-ca"}, time.Now))
			t.Cleanup(w.options.Issuers[0].client.CloseIdleConnections)
			good := claims(time.Hour, "mesh")
			good.Issuer = s.URL

			s.away.Store(true)
			w.is(t, Credentials{Token: token(t, key, good)}, ReasonUnavailable, codes.Unavailable)
			s.away.Store(false)
			p, err := w.Authenticate(t.Context(), Credentials{Token: token(t, key, good), ClusterID: "elsewhere"})
			if err != nil || p.Identity.String() != "spiffe://cluster.local/ns/shop/sa/web" || p.Until.IsZero() {
				t.Fatal(p, err)
			}
			expired, audience, subject := good, good, good
			expired.Expiry, audience.Audience, subject.Subject = claims(-time.Hour, "").Expiry, []string{"other"}, "web"
			w.is(t, Credentials{Token: token(t, key, expired)}, ReasonExpired, codes.Unauthenticated)
			w.is(t, Credentials{Token: token(t, key, audience)}, ReasonAudience, codes.Unauthenticated)
			w.is(t, Credentials{Token: token(t, key, subject)}, ReasonToken, codes.Unauthenticated)
			w.is(t, Credentials{Token: token(t, newKey(t), good)}, ReasonToken, codes.Unauthenticated)
			if w.api.asks() != 0 {
				t.Error("the API server was asked")
			}
			for range 20 { // signed by nobody: the keys are not fetched for each
				_, _ = w.Authenticate(t.Context(), Credentials{Token: token(t, newKey(t), good)})
			}
			if n := s.fetched.Load(); n > 5 {
				t.Errorf("the keys were fetched %d times", n)
			}
		})
	}
}
