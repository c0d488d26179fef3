package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pilotd/pilotd/agent/envoy"
	"github.com/pilotd/pilotd/agent/probe"
)

func newServer(t *testing.T, change func(*Options)) *Server {
	t.Helper()
	o := Options{Ready: func(context.Context) error { return nil }, Quit: func() {}, Log: slog.New(slog.DiscardHandler),
		Drain: func(context.Context) error { return nil }, Metrics: Metrics{Agent: prometheus.NewRegistry(),
			Failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "f"}, []string{"type"})}}
	change(&o)
	return New(o)
}

// ask asks from an address, and returns the status and the body.
func ask(s *Server, from, method, path string) (int, string) {
	r := httptest.NewRequest(method, path, nil)
	r.RemoteAddr = from
	w := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

const outside, inside = "10.1.1.1:5000", "127.0.0.1:5000"

// What changes something answers to the pod's own processes, and readiness to everyone.
func TestWhoMay(t *testing.T) {
	quits, drains := 0, 0
	var ready error
	s := newServer(t, func(o *Options) {
		o.Quit = func() { quits++ }
		o.Drain = func(context.Context) error { drains++; return nil }
		o.Ready = func(context.Context) error { return ready }
		o.Names = func() []byte { return []byte("{}") }
	})
	for _, path := range []string{"/quitquitquit", "/drain", "/debug/ndsz", "/debug/pprof/"} {
		method := http.MethodPost
		if strings.HasPrefix(path, "/debug") {
			method = http.MethodGet
		}
		if code, _ := ask(s, outside, method, path); code != http.StatusForbidden {
			t.Error(path, "from outside:", code)
		}
		if code, _ := ask(s, inside, method, path); code != http.StatusOK {
			t.Error(path, "from inside:", code)
		}
		if code, _ := ask(s, "[::1]:1", http.MethodGet, path); (code == http.StatusOK) != (method == http.MethodGet) {
			t.Error("GET", path, code)
		}
	}
	if quits != 1 || drains != 1 {
		t.Error(quits, drains)
	}
	if code, _ := ask(s, outside, http.MethodGet, "/healthz/ready"); code != http.StatusOK {
		t.Error(code)
	}
	ready = errors.New("not yet")
	if code, body := ask(s, outside, http.MethodGet, "/healthz/ready"); code != http.StatusServiceUnavailable ||
		!strings.Contains(body, "not yet") {
		t.Error(code, body)
	}
}

// The kubelet gets the application's own status, and 500 where it has none.
func TestApplication(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, "short and stout")
	}))
	defer app.Close()
	at := netip.MustParseAddrPort(app.Listener.Addr().String())
	s := newServer(t, func(o *Options) {
		o.Asker = probe.Asker{Host: at.Addr()}
		o.Probes = map[string]*probe.Probe{
			"/app-health/a/livez":         {HTTP: &probe.HTTP{Path: "/", Port: probe.Port(at.Port())}},
			"/app-lifecycle/a/poststartz": {TCP: &probe.TCP{Port: 1}},
		}
	})
	for path, want := range map[string]int{"/app-health/a/livez": 418, "/app-lifecycle/a/poststartz": 500,
		"/app-health/b/livez": 404} {
		if code, body := ask(s, outside, http.MethodGet, path); code != want || code == 418 && body != "short and stout" {
			t.Error(path, code, body)
		}
	}
}

// Metrics of Envoy, the agent and the application come in one answer; what is missing is left out and counted.
func TestMetrics(t *testing.T) {
	envoyed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "envoy_a 1") // without an end of its line
	}))
	defer envoyed.Close()
	var asked *http.Request
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r
		fmt.Fprint(w, "app_a 1\r\n# EOF\n")
	}))
	page, err := url.Parse(app.URL + "/m?x=1")
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "agent_a"}, func() float64 { return 1 }))
	s := newServer(t, func(of *Options) {
		of.Admin = envoy.Admin{URL: envoyed.URL}
		of.Metrics.Agent, of.Metrics.Application = registry, page
		registry.MustRegister(of.Metrics.Failures)
	})
	code, body := ask(s, outside, http.MethodGet, "/metrics")
	if code != 200 || body != "envoy_a 1\n# HELP agent_a \n# TYPE agent_a gauge\nagent_a 1\napp_a 1\r\n" {
		t.Errorf("%d %q", code, body)
	}
	if asked.URL.RequestURI() != "/m?x=1" || !strings.HasPrefix(asked.Header.Get("Accept"), "text/plain") {
		t.Error(asked.URL, asked.Header)
	}
	app.Close()
	if _, body := ask(s, outside, http.MethodGet, "/stats/prometheus"); !strings.Contains(body, "envoy_a 1\n") ||
		strings.Contains(body, "app_a") {
		t.Error(body)
	}
	if _, body := ask(s, outside, http.MethodGet, "/metrics"); !strings.Contains(body, `f{type="application"} 1`) {
		t.Error(body)
	}
}

func TestApplicationPage(t *testing.T) {
	for text, want := range map[string]string{
		"": "", `{"scrape":"false","port":"1"}`: "", `{}`: "",
		`{"scrape":"true"}`:                           "http://localhost:80/metrics",
		`{"scrape":"true","path":"m","port":"9090"}`:  "http://localhost:9090/m",
		`{"scrape":"true","path":"/m?a=b","port":""}`: "http://localhost:80/m?a=b",
	} {
		got, err := ApplicationPage(text, 15020)
		if err != nil || want != "" && got.String() != want || want == "" && got != nil {
			t.Error(text, got, err)
		}
	}
	for _, bad := range []string{"x", `{"scrape":"true","port":"15020"}`, `{"scrape":"true","port":"http"}`} {
		if _, err := ApplicationPage(bad, 15020); err == nil {
			t.Error(bad, "is taken")
		}
	}
}

// A line of any length passes, and only the last of an answer in OpenMetrics is left out.
func TestLines(t *testing.T) {
	var b strings.Builder
	long := strings.Repeat("x", 10000)
	if err := (&lines{&b}).copy(io.MultiReader(strings.NewReader(long + "\na # EOF\n# EOF"))); err != nil {
		t.Fatal(err)
	}
	if b.String() != long+"\na # EOF\n" {
		t.Error(len(b.String()))
	}
}
