package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/pilotd/pilotd/e2e/parts"
)

// TestFetchedKeysOfIssuers: pilotd fetches keys from a URI and by OpenID discovery, and again when they change. Tokens
// are found in headers, parameters and cookies; those of an issuer whose keys cannot be fetched are refused.
func TestFetchedKeysOfIssuers(t *testing.T) {
	t.Setenv("PILOT_JWT_PUB_KEY_REFRESH_INTERVAL", "1s")
	first, second := newIssuer(t), newIssuer(t)
	var keys atomic.Value
	keys.Store(first.keys(t))
	var base string
	pages := http.NewServeMux()
	pages.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, keys.Load()) })
	pages.HandleFunc("/issuer/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"issuer": %q, "jwks_uri": %q}`, base+"/issuer", base+"/keys")
	})
	server := httptest.NewServer(pages)
	defer server.Close()
	base = server.URL
	w := newWorld(t, inDirectory, baseMesh()+securePod().yaml()+
		service("shop/secure", secureVIP, "app: secure", "{name: http, port: 80, targetPort: 8080}")+
		slice("secure", "shop", "{name: http, port: 8080, protocol: TCP}", securePod())+fmt.Sprintf(`
---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: tokens, namespace: shop}
spec:
  selector: {matchLabels: {app: secure}}
  jwtRules:
  - {issuer: "https://remote", jwksUri: "%[1]s/keys", fromHeaders: [{name: x-token, prefix: "Tok "}], fromParams: [t],
     fromCookies: [c], outputPayloadToHeader: x-payload, forwardOriginalToken: true}
  - {issuer: "%[1]s/issuer"}
  - {issuer: "https://broken", jwksUri: "%[1]s/none", fromHeaders: [{name: x-broken}]}
`, base))
	client, envoys := w.securePair(t, parts.Delta, map[string]string{"8080": "secure"})
	web := client.Client()
	remote, found := map[string]any{"iss": "https://remote"}, map[string]any{"iss": base + "/issuer"}
	good, old := first.token(t, remote), ""
	ask := func(want int, path string, headers ...string) error {
		a, err := parts.Ask(web, "http://"+secureVIP+path, secureHost, headers...)
		if err != nil || a.Status != want {
			return fmt.Errorf("%.30s %.30q: status %d, %v, want %d", path, headers, a.Status, err, want)
		}
		if forwarded := a.Header.Get("x-echo-header-x-payload") != ""; want == 200 && forwarded != (path != "/" ||
			len(headers) > 0 && headers[0] != "authorization") {
			return fmt.Errorf("%.30s %.30q: the application is told of a payload: %v", path, headers, forwarded)
		}
		return nil
	}
	all := func() error {
		for _, err := range []error{
			ask(200, "/"), ask(200, "/", "x-token", "Tok "+good), ask(200, "/?t="+good), ask(200, "/", "cookie", "c="+good),
			ask(401, "/", "x-token", "Tok "+newIssuer(t).token(t, remote)), ask(401, "/?t="+cutOff(good)),
			ask(401, "/", "x-broken", first.token(t, map[string]any{"iss": "https://broken"})),
		} {
			if err != nil {
				return err
			}
		}
		if old != "" {
			return ask(401, "/", "x-token", "Tok "+old)
		}
		return ask(200, "/", "authorization", "Bearer "+first.token(t, found))
	}
	parts.Eventually(t, "tokens of the first key", all)
	old, good = good, second.token(t, remote)
	keys.Store(second.keys(t))
	parts.Eventually(t, "tokens of the key that took its place", all)
	keys.Store("gone")
	if err := all(); err != nil {
		t.Errorf("while the keys cannot be fetched: %v", err)
	}
	for _, e := range envoys {
		if err := e.NothingRefused(); err != nil {
			t.Error(err)
		}
	}
}
