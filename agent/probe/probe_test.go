package probe

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

func portOf(t *testing.T, a net.Addr) Port {
	t.Helper()
	p, err := netip.ParseAddrPort(a.String())
	if err != nil {
		t.Fatal(err)
	}
	return Port(p.Port())
}

// Each kind of probe tells an application that is well from one that is not, and asks from the address that is let
// through.
func TestAsk(t *testing.T) {
	var mu sync.Mutex
	var seen *http.Request // guarded by mu
	app := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = r
		mu.Unlock()
		switch r.URL.Path {
		case "/well":
			w.WriteHeader(http.StatusNoContent)
		case "/here":
			http.Redirect(w, r, "/well", http.StatusFound)
		case "/there":
			http.Redirect(w, r, "http://elsewhere.example/", http.StatusFound)
		default:
			w.WriteHeader(http.StatusTeapot)
		}
	})
	plain, secure := httptest.NewServer(app), httptest.NewTLSServer(app)
	defer plain.Close()
	defer secure.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	says := health.NewServer()
	says.SetServingStatus("bad", healthv1.HealthCheckResponse_NOT_SERVING)
	healthv1.RegisterHealthServer(g, says)
	go func() { _ = g.Serve(l) }()
	defer g.Stop()
	http1, https, rpc := portOf(t, plain.Listener.Addr()), portOf(t, secure.Listener.Addr()), portOf(t, l.Addr())
	a := Asker{Host: netip.MustParseAddr("127.0.0.1"), From: netip.MustParseAddr("127.0.0.6")}
	for name, c := range map[string]struct {
		probe  Probe
		status int
		well   bool
	}{
		"http":               {Probe{HTTP: &HTTP{Path: "well", Port: http1}}, 204, true},
		"http that is bad":   {Probe{HTTP: &HTTP{Path: "/x", Port: http1}}, 418, false},
		"redirect":           {Probe{HTTP: &HTTP{Path: "/here", Port: http1}}, 204, true},
		"redirect elsewhere": {Probe{HTTP: &HTTP{Path: "/there", Port: http1}}, 302, true},
		"https":              {Probe{HTTP: &HTTP{Path: "/well", Port: https, Scheme: "HTTPS"}}, 204, true},
		"tcp":                {Probe{TCP: &TCP{Port: http1}}, 200, true},
		"nobody":             {Probe{TCP: &TCP{Port: 1}}, 500, false},
		"grpc":               {Probe{GRPC: &GRPC{Port: rpc}}, 200, true},
		"grpc that is bad":   {Probe{GRPC: &GRPC{Port: rpc, Service: "bad"}}, 500, false},
		"command":            {Probe{Exec: &Exec{Command: []string{"true"}}}, 200, true},
		"command that fails": {Probe{Exec: &Exec{Command: []string{"false"}}}, 500, false},
	} {
		c.probe.TimeoutSeconds = 10
		answer, err := a.Ask(t.Context(), &c.probe, nil)
		if answer.Status != c.status || (err == nil) != c.well {
			t.Errorf("%s: %d, %v", name, answer.Status, err)
		}
	}
	headers := []Header{{"Host", "me.example"}, {"X-P", "1"}}
	if _, err := a.Ask(t.Context(), &Probe{HTTP: &HTTP{Path: "/well", Port: http1, Headers: headers}},
		http.Header{"User-Agent": {"kube-probe/1"}}); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if seen.Host != "me.example" || seen.Header.Get("X-P") != "1" || seen.UserAgent() != "kube-probe/1" ||
		!strings.HasPrefix(seen.RemoteAddr, "127.0.0.6:") {
		t.Error(seen.Host, seen.Header, seen.RemoteAddr)
	}
}

// An application that does not answer is not well when the time is over.
func TestTimeout(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a := Asker{Host: netip.MustParseAddr("127.0.0.1")}
	_, err = a.Ask(t.Context(), &Probe{HTTP: &HTTP{Path: "/", Port: portOf(t, l.Addr())}}, nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestReadAll(t *testing.T) {
	all, err := ReadAll(`{"/app-health/a/livez":{"tcpSocket":{"port":9000}},"/app-health/a/readyz":{"httpGet":` +
		`{"path":"/r","port":"8080","scheme":"HTTPS","httpHeaders":[{"name":"x","value":"1"}]},"timeoutSeconds":3}}`)
	if err != nil || len(all) != 2 || all["/app-health/a/readyz"].HTTP.Port != 8080 ||
		all["/app-health/a/readyz"].TimeoutSeconds != 3 || all["/app-health/a/livez"].TCP.Port != 9000 {
		t.Error(all, err)
	}
	for _, bad := range []string{"x", `{"/a":null}`, `{"/a":{}}`, `{"/a":{"tcpSocket":{"port":"http"}}}`,
		`{"/a":{"tcpSocket":{"port":1},"grpc":{"port":1}}}`} {
		if _, err := ReadAll(bad); err == nil {
			t.Error(bad, "is taken")
		}
	}
}

// So many equal answers in a row change the verdict, and only changes are told.
func TestWatch(t *testing.T) {
	answers := []bool{false, true, true, false, false, true, false, false, false, false, true, true, true}
	synctest.Test(t, func(t *testing.T) {
		v := verdict{schedule: Schedule{Success: 2, Failure: 3}}
		var told []int
		for i, well := range answers {
			if v.take(well) {
				told = append(told, i)
			}
		}
		if len(told) != 3 || told[0] != 2 || told[1] != 8 || told[2] != 11 {
			t.Error("the verdict changes at", told)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var n atomic.Int32
		done := make(chan struct{})
		go func() {
			Asker{}.Watch(ctx, &Probe{Exec: &Exec{Command: []string{"/nowhere"}}},
				Schedule{Delay: time.Minute, Period: 10 * time.Second, Failure: 3}, func(err error) {
					n.Add(1)
					if err == nil {
						t.Error("it is well")
					}
				})
			close(done)
		}()
		time.Sleep(time.Minute + 15*time.Second)
		if n.Load() != 0 {
			t.Error("told too early")
		}
		time.Sleep(time.Hour)
		if n.Load() != 1 {
			t.Error("told", n.Load(), "times")
		}
		cancel()
		<-done
	})
}
