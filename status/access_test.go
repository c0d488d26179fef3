package status

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// asked is a request for a debug page.
type asked struct {
	from, host string
	headers    map[string]string
}

func (a asked) of(t *testing.T, access Access) int {
	t.Helper()
	h := Handler(NewMetrics("test"), Pages{
		Ready: func() (bool, string) { return true, "" }, Access: access,
		Debug: map[string]Page{"page": func(*http.Request) (any, error) { return "content", nil }},
	})
	r := httptest.NewRequest(http.MethodGet, "/debug/page", nil)
	r.RemoteAddr, r.Host = a.from, a.host
	for name, value := range a.headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func TestDebugAnswersThisMachineAlone(t *testing.T) {
	const here, local = "127.0.0.1:40000", "localhost:8080"
	with := func(name, value string) asked { return asked{here, local, map[string]string{name: value}} }
	for name, c := range map[string]struct {
		asked
		want int
	}{
		"curl in the pod":                        {asked{from: here, host: "127.0.0.1:8080"}, 200},
		"curl in the pod, IPv6":                  {asked{from: "[::1]:40000", host: "[::1]:8080"}, 200},
		"IPv4 in IPv6":                           {asked{from: "[::ffff:127.0.0.1]:40000", host: local}, 200},
		"a port-forward on another port":         {asked{from: here, host: "localhost:12345"}, 200},
		"a port-forward in a browser":            {with("Sec-Fetch-Site", "none"), 200},
		"another pod through the sidecar":        {asked{from: "127.0.0.6:40000", host: local}, 403},
		"another pod, IPv4 in IPv6":              {asked{from: "[::ffff:127.0.0.6]:40000", host: local}, 403},
		"another pod through the sidecar, IPv6":  {asked{from: "[::6]:40000", host: local}, 403},
		"another loopback address":               {asked{from: "127.0.0.2:40000", host: local}, 403},
		"another machine":                        {asked{from: "10.0.0.1:40000", host: local}, 403},
		"no address":                             {asked{from: "@", host: local}, 403},
		"a name that leads here":                 {asked{from: here, host: "evil.example.com"}, 403},
		"the pod's address as the name":          {asked{from: here, host: "10.0.0.1:8080"}, 403},
		"no name":                                {asked{from: here}, 403},
		"a sidecar that connects from localhost": {with("X-Forwarded-Proto", "http"), 403},
		"Envoy":                                  {with("X-Envoy-Decorator-Operation", "x"), 403},
		"another proxy":                          {with("Via", "1.1 squid"), 403},
		"an image on another page":               {with("Sec-Fetch-Site", "cross-site"), 403},
		"another page's script":                  {with("Origin", "http://evil.example.com"), 403},
		"a wrong token, though from here":        {with("Authorization", "Bearer x"), 403},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.of(t, Access{}); got != c.want {
				t.Errorf("answered %d, want %d", got, c.want)
			}
		})
	}
	if got := (asked{from: "10.0.0.1:1", host: "x"}).of(t, Access{Anywhere: true}); got != 200 {
		t.Errorf("open to everybody: answered %d", got)
	}
}

func TestDebugTokenOpensFromEverywhere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	bring := func(token string) asked {
		return asked{"10.0.0.1:40000", "pilotd.istio-system:8080",
			map[string]string{"Authorization": "Bearer " + token}}
	}
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(a Access, token string, want int) {
		t.Helper()
		if got := bring(token).of(t, a); got != want {
			t.Errorf("token %q: answered %d, want %d", token, got, want)
		}
	}
	check(Access{}, "", 403) // No secret is no empty secret.
	check(Access{Token: "secret"}, "secret", 200)
	check(Access{Token: "secret"}, "secre", 403)
	check(Access{Token: "secret"}, "", 403)
	check(Access{TokenFile: file}, "first", 403) // There is no file yet.
	check(Access{TokenFile: file}, "", 403)
	write("first\n")
	check(Access{TokenFile: file}, "first", 200)
	write("second\n")
	check(Access{TokenFile: file}, "first", 403)
	check(Access{TokenFile: file}, "second", 200)
	write("\n")
	check(Access{TokenFile: file}, "", 403)
	write(strings.Repeat("x", maxToken+1))
	check(Access{TokenFile: file}, strings.Repeat("x", maxToken+1), 403)
}

// What is no debug page is for everybody, and debug pages are only read.
func TestOnlyDebugIsGuardedAndNothingIsWritten(t *testing.T) {
	h := Handler(NewMetrics("test"), Pages{Ready: func() (bool, string) { return false, "services" }, Version: "1.2.3"})
	for _, c := range []struct {
		method, path string
		code         int
		body         string
	}{
		{"GET", "/ready", 503, "not ready: services"}, {"GET", "/version", 200, "1.2.3"},
		{"GET", "/metrics", 200, "go_goroutines"},
		{"GET", "/debug/pprof/", 403, ""}, {"GET", "/debug/pprof/heap", 403, ""}, {"GET", "/debug", 403, ""},
		{"POST", "/debug/pprof/symbol", 405, ""}, {"DELETE", "/debug", 405, ""}, {"GET", "/other", 404, ""},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		r.RemoteAddr = "10.0.0.1:40000"
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.body) {
			t.Errorf("%s %s: answered %d %.200q, want %d %q", c.method, c.path, w.Code, w.Body, c.code, c.body)
		}
	}
}
