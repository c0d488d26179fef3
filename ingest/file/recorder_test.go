package file

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a Sink that keeps what it was told.
type recorder struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each call
	// Guarded by mu.
	applies [][]ingest.Event
	state   map[value.ObjectKey]ingest.Event
	bad     map[string][]ingest.Rejection // by place
	synced  bool
}

func newRecorder() *recorder {
	return &recorder{changed: make(chan struct{}), state: map[value.ObjectKey]ingest.Event{}, bad: map[string][]ingest.Rejection{}}
}

func (r *recorder) record(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *recorder) Apply(events []ingest.Event) {
	r.record(func() {
		r.applies = append(r.applies, events)
		for _, e := range events {
			if e.Object == nil {
				delete(r.state, e.Key)
			} else {
				r.state[e.Key] = e
			}
		}
	})
}

func (r *recorder) Reject(b ingest.Rejection) {
	place := b.Where
	if i := strings.LastIndexByte(place, ':'); i > 0 {
		place = place[:i]
	}
	r.record(func() { r.bad[place] = append(r.bad[place], b) })
}

func (r *recorder) Accept(_, place string) { r.record(func() { delete(r.bad, place) }) }
func (r *recorder) Synced(string)          { r.record(func() { r.synced = true }) }

// until waits for calls until cond holds.
func (r *recorder) until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		r.mu.Lock()
		ok, changed := cond(), r.changed
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-limit:
			r.mu.Lock()
			defer r.mu.Unlock()
			t.Fatalf("waited in vain for %s; have %v, rejected %v", what, maps.Collect(maps.All(r.state)), r.bad)
		}
	}
}

// host is the first host of a VirtualService in force, or "".
func (r *recorder) host(name string) string {
	o := r.state[virtualService(name)].Object
	return firstHost(o)
}

func virtualService(name string) value.ObjectKey {
	return value.ObjectKey{Kind: value.KindVirtualService, Namespace: "default", Name: name}
}

// follows runs a source until the test ends, and waits for its end.
func follows(t *testing.T, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// start runs a source over dir and waits until it is synced.
func start(t *testing.T, dir string) *recorder {
	r := newRecorder()
	follows(t, New(Options{Dir: dir, Sink: r, Log: quiet()}).Run)
	r.until(t, "sync", func() bool { return r.synced })
	return r
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// vs is a VirtualService that routes host to itself.
func vs(name, host string) string {
	return `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: ` + name + `
spec:
  hosts: ["` + host + `"]
  http:
  - route:
    - destination:
        host: ` + host + `
`
}
