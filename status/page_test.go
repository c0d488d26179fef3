package status

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask returns what a client on this machine is answered.
func ask(h http.Handler, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.RemoteAddr, r.Host = "127.0.0.1:40000", "localhost:8080"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func serving(pages map[string]Page, log *slog.Logger) http.Handler {
	return Handler(NewMetrics("test"), Pages{Ready: func() (bool, string) { return true, "" }, Debug: pages, Log: log})
}

// A page that panics answers 500, is counted each time and logged once, and keeps no turn: the others go on.
func TestAPageThatPanicsIsContained(t *testing.T) {
	var log bytes.Buffer
	h := serving(map[string]Page{
		"bad":  func(*http.Request) (any, error) { panic("no name for 7") },
		"good": func(*http.Request) (any, error) { return []int{1}, nil },
		"odd":  func(*http.Request) (any, error) { return nil, errors.New("parameter x is missing") },
		"inf":  func(*http.Request) (any, error) { return make(chan int), nil },
	}, slog.New(slog.NewTextHandler(&log, nil)))
	for range 2 * pagesAtOnce {
		if w := ask(h, "/debug/bad"); w.Code != http.StatusInternalServerError {
			t.Fatalf("answered %d %s", w.Code, w.Body)
		}
	}
	for path, want := range map[string]int{"/debug/good": 200, "/debug/odd": 400, "/debug/inf": 500, "/debug": 200,
		"/debug/": 200, "/debug/none": 404} {
		if w := ask(h, path); w.Code != want {
			t.Errorf("%s: answered %d, want %d", path, w.Code, want)
		}
	}
	if want := `pilotd_page_panics{page="/debug/bad"} 4`; !strings.Contains(ask(h, "/metrics").Body.String(), want) {
		t.Errorf("the metrics lack %s", want)
	}
	if n := strings.Count(log.String(), "no name for 7"); n != 1 || !strings.Contains(log.String(), "page_test.go") {
		t.Errorf("logged %d times: %s", n, log.String())
	}
}

// So many pages are made at once and no more; who waits too long is told so, and so is who leaves.
func TestPagesAreMadeInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, made := make(chan struct{}), 0
		h := serving(map[string]Page{"slow": func(*http.Request) (any, error) {
			made++
			<-release
			return "done",
				nil
		}}, nil)
		done := make(chan int, 10)
		for range pagesAtOnce {
			go func() { done <- ask(h, "/debug/slow").Code }()
			synctest.Wait()
		}
		if w := ask(h, "/debug/slow"); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" ||
			made != pagesAtOnce {
			t.Errorf("answered %d, made %d", w.Code, made)
		}
		ctx, leave := context.WithCancel(context.Background())
		left := make(chan struct{})
		go func() {
			defer close(left)
			r := httptest.NewRequest(http.MethodGet, "/debug/slow", nil).WithContext(ctx)
			r.RemoteAddr, r.Host = "127.0.0.1:1", "localhost"
			h.ServeHTTP(httptest.NewRecorder(), r)
		}()
		leave()
		<-left
		close(release)
		for range pagesAtOnce {
			if code := <-done; code != http.StatusOK {
				t.Errorf("answered %d", code)
			}
		}
		if w := ask(h, "/debug/slow"); w.Code != http.StatusOK {
			t.Errorf("afterwards: answered %d", w.Code)
		}
	})
}

// One profile is taken at a time, and none for ever.
func TestProfilesAreBounded(t *testing.T) {
	h := serving(nil, nil)
	for _, seconds := range []string{"100000", "-1", "NaN", "Inf", "x", "1e300"} {
		for _, page := range []string{"profile", "trace", "heap"} {
			if w := ask(h, "/debug/pprof/"+page+"?seconds="+seconds); w.Code != http.StatusBadRequest {
				t.Errorf("%s of %s seconds: answered %d", page, seconds, w.Code)
			}
		}
	}
	first, begun := make(chan int), make(chan struct{})
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		r := httptest.NewRequest(http.MethodGet, "/debug/pprof/trace?seconds=100", nil).WithContext(ctx)
		r.RemoteAddr, r.Host = "127.0.0.1:1", "localhost"
		w := &beginning{ResponseRecorder: httptest.NewRecorder(), begun: begun}
		h.ServeHTTP(w, r)
		first <- w.Code
	}()
	<-begun
	if w := ask(h, "/debug/pprof/heap?seconds=0.000000001"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("a second one beside the first: answered %d", w.Code)
	}
	if w := ask(h, "/debug/pprof/goroutine"); w.Code != http.StatusOK || w.Body.Len() == 0 {
		t.Errorf("what takes no time has to wait: %d", w.Code)
	}
	stop()
	if code := <-first; code != http.StatusOK {
		t.Errorf("the first: answered %d", code)
	}
}

// beginning is a recorder that closes begun at the first byte of the answer's body: a trace writes its header when it
// starts.
type beginning struct {
	*httptest.ResponseRecorder
	begun chan struct{}
	once  sync.Once
}

func (b *beginning) Write(p []byte) (int, error) {
	b.once.Do(func() { close(b.begun) })
	return b.ResponseRecorder.Write(p)
}
