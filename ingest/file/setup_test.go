package file

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	networking "istio.io/client-go/pkg/apis/networking/v1"

	"github.com/pilotd/pilotd/ingest/sinktest"
	"github.com/pilotd/pilotd/snapshot/value"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host returns the first host of a VirtualService in force, or "".
func host(told *sinktest.Told, name string) string {
	if v, ok := told.Objects[virtualService(name)].Object.(*networking.VirtualService); ok && len(v.Spec.Hosts) > 0 {
		return v.Spec.Hosts[0]
	}
	return ""
}

// hosts returns the condition that a VirtualService in force has that host.
func hosts(name, want string) func(*sinktest.Told) bool {
	return func(told *sinktest.Told) bool { return host(told, name) == want }
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
func start(t *testing.T, dir string) *sinktest.Recorder {
	r := sinktest.New()
	follows(t, New(Options{Dir: dir, Sink: r, Log: quiet()}).Run)
	r.Until(t, "sync", synced)
	return r
}

func synced(told *sinktest.Told) bool { return len(told.Synced) == 1 }

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// vs returns a VirtualService that routes host to itself.
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
