package envoy

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// admin is an admin page that a test writes.
type admin struct {
	mu    sync.Mutex
	stats string
	posts []string
	asked chan struct{}
}

func (a *admin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.Method == http.MethodPost {
		a.posts = append(a.posts, r.URL.RequestURI())
		return
	}
	fmt.Fprint(w, a.stats)
	select {
	case a.asked <- struct{}{}:
	default:
	}
}

func (a *admin) say(stats string) { a.mu.Lock(); a.stats = stats; a.mu.Unlock() }

func (a *admin) serve(t *testing.T) Admin {
	a.asked = make(chan struct{}, 1)
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	client := s.Client()
	t.Cleanup(client.CloseIdleConnections)
	return Admin{URL: s.URL, Own: []uint32{15021, 15090}, Client: client}
}

// Ready takes all that it says, and what was there once counts for ever.
func TestReadiness(t *testing.T) {
	page := &admin{}
	a := page.serve(t)
	r := &Readiness{}
	const configured = "cluster_manager.cds.update_success: 1\nlistener_manager.lds.update_success: 2\n"
	for _, step := range []struct{ stats, want string }{
		{"", "no clusters"},
		{"cluster_manager.cds.update_rejected: 1\n", "refused its clusters"},
		{"cluster_manager.cds.update_success: 1\n", "no listeners"},
		{"cluster_manager.cds.update_success: 1\nlistener_manager.lds.update_rejected: 1\n", "refused its listeners"},
		{configured + "server.state: 2\nlistener_manager.workers_started: 0\n", "state is 2"},
		{"server.state: 0\nlistener_manager.workers_started: 0\n", "workers"},
		{"server.state: 0\nlistener_manager.workers_started: 1\n", ""},
		{"server.state: 3\n", ""},
	} {
		page.say(step.stats)
		err := r.Check(t.Context(), a)
		if (err == nil) != (step.want == "") || err != nil && !strings.Contains(err.Error(), step.want) {
			t.Errorf("%q: %v, want %q", step.stats, err, step.want)
		}
	}
}

// Connections of applications count, and nobody else's.
func TestConnections(t *testing.T) {
	page := &admin{stats: "listener.admin.downstream_cx_active: 1\nlistener.0.0.0.0_15021.downstream_cx_active: 2\n" +
		"listener.[__]_15090.downstream_cx_active: 4\nlistener.0.0.0.0_15006.downstream_cx_active: 8\n" +
		"listener.10.1.1.1_80.downstream_cx_active: 16\nhttp.admin.downstream_cx_active: 32\n" +
		"listener.0.0.0.0_15006.worker_0.downstream_cx_active: 8\n"}
	n, err := page.serve(t).Connections(t.Context())
	if err != nil || n != 24 {
		t.Error(n, err)
	}
}

// program writes a program that stands for Envoy.
func program(t *testing.T, script string) string {
	path := filepath.Join(t.TempDir(), "envoy")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// sync is a buffer that a process writes and a test reads.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}
func (o *output) String() string { o.mu.Lock(); defer o.mu.Unlock(); return o.buf.String() }

func start(t *testing.T, script string) (*Process, *output) {
	t.Helper()
	out := &output{}
	p, err := Start(Options{Binary: program(t, script), Config: "/config", Override: "a: b", LogLevel: "warning",
		Concurrency: 2, DrainTime: 45 * time.Second, FlushInterval: time.Second, Stdout: out, Stderr: out,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p, out
}

// Envoy gets what it is started with, and how it ends is known.
func TestStart(t *testing.T) {
	p, out := start(t, `echo "$@"; exit 3`)
	<-p.Done()
	if p.Err() == nil || !strings.Contains(p.Err().Error(), "3") {
		t.Error(p.Err())
	}
	got := strings.Fields(out.String())
	for _, want := range [][]string{{"-c", "/config"}, {"--drain-time-s", "45"}, {"--concurrency", "2"},
		{"--config-yaml", "a:", "b"}, {"--file-flush-interval-msec", "1000"}, {"-l", "warning"}} {
		if i := slices.Index(got, want[0]); i < 0 || !slices.Equal(got[i:i+len(want)], want) {
			t.Errorf("no %v in %v", want, got)
		}
	}
	if _, err := Start(Options{Binary: "/nowhere", Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("a program that is not there was started")
	}
}

// Why Envoy cannot start is in how it has ended, in one line; all that it logs is passed on.
func TestWhy(t *testing.T) {
	long := strings.Repeat("x", 3*longestLine)
	p, out := start(t, `printf 'T\tcritical\tenvoy main a.cc:1\tfirst\tthread=1\n' >&2
printf 'T\tinfo\tenvoy main a.cc:2\tsecond\tthread=1\n' >&2
printf 'T\tcritical\tenvoy main a.cc:3\tcannot bind [::]:15021: `+long+`' >&2
printf ' in use\tthread=1\nexiting\n' >&2
printf 'T\tcritical\tenvoy main a.cc:3\tcannot bind :15021\tthread=1\n' >&2; exit 1`)
	<-p.Done()
	if err := p.Err(); err == nil || err.Error() != "exit status 1: cannot bind :15021" {
		t.Error(err)
	}
	got := out.String()
	if strings.Count(got, "\n") != 5 || !strings.Contains(got, long) || !strings.Contains(got, "second") {
		t.Errorf("%.200q", got)
	}
}

// Components of logging that an Envoy does not know keep it from starting; they are left out, and named.
func TestKnownComponents(t *testing.T) {
	binary := program(t, `case "$*" in *odd*) echo "error: invalid component specified 'odd'" >&2; exit 1;;
*new*) echo "error: invalid component specified 'new'" >&2; exit 1;; esac; echo disabled`)
	for levels, want := range map[string]string{"misc:error": "misc:error ", "odd:info": " odd",
		"misc:error,odd:debug,upstream:info,new:off": "misc:error,upstream:info odd new"} {
		known, unknown := KnownComponents(t.Context(), binary, levels)
		if got := known + " " + strings.Join(unknown, " "); got != want {
			t.Errorf("%s: %q, want %q", levels, got, want)
		}
	}
	bad := program(t, `echo "error: invalid component specified 'else'" >&2; exit 1`)
	for _, binary := range []string{bad, "/nowhere"} { // what helps nobody is left to Envoy
		known, unknown := KnownComponents(t.Context(), binary, "upstream:info")
		if known != "upstream:info" || unknown != nil {
			t.Error(binary, known, unknown)
		}
	}
}

// At its end Envoy drains for the time that it has; one that was drained before ends at once.
func TestEnd(t *testing.T) {
	page := &admin{}
	a := page.serve(t)
	p, _ := start(t, "exec sleep 1000")
	begin := time.Now()
	p.End(t.Context(), a, Ending{Time: 300 * time.Millisecond, InboundOnly: true})
	if d := time.Since(begin); d < 300*time.Millisecond {
		t.Error("it ended after", d)
	}
	if !slices.Equal(page.posts, []string{"/drain_listeners?inboundonly&graceful&skip_exit"}) {
		t.Error(page.posts)
	}
	q, _ := start(t, "exec sleep 1000")
	for range 2 {
		if err := q.Drain(t.Context(), a, Ending{}); err != nil {
			t.Error(err)
		}
	}
	q.End(t.Context(), a, Ending{Time: time.Hour})
	if len(page.posts) != 2 || page.posts[1] != "/drain_listeners?graceful&skip_exit" {
		t.Error(page.posts)
	}
	// An Envoy that ends by itself while it drains is not waited for.
	r, _ := start(t, "read line; exit 0")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.End(ctx, a, Ending{Time: time.Hour})
}

// With OnZero it ends when no connection is open, and not before the least time has passed.
func TestEndOnZero(t *testing.T) {
	page := &admin{stats: "listener.0.0.0.0_15006.downstream_cx_active: 1\n"}
	a := page.serve(t)
	p, _ := start(t, "exec sleep 1000")
	ended := make(chan struct{})
	go func() {
		p.End(t.Context(), a, Ending{OnZero: true, Least: 10 * time.Millisecond, Every: 10 * time.Millisecond})
		close(ended)
	}()
	for range 3 {
		<-page.asked
	}
	select {
	case <-ended:
		t.Fatal("it ended with a connection open")
	default:
	}
	page.say("listener.0.0.0.0_15006.downstream_cx_active: 0\n")
	<-ended
}
