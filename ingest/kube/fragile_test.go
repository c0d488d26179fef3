package kube

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/ingest/sinktest"
)

type ingestRejection = ingest.Rejection

// fragile is a Sink that panics over the object "poison".
type fragile struct{ *sinktest.Recorder }

func (f *fragile) Apply(events []ingest.Event) {
	for _, e := range events {
		if e.Key.Name == "poison" {
			panic("cannot take " + e.Key.String())
		}
	}
	f.Recorder.Apply(events)
}

func newService(name string) *core.Service {
	return &core.Service{ObjectMeta: meta.ObjectMeta{Namespace: "a", Name: name}}
}

// run runs a source until the test ends.
func run(t *testing.T, r ingest.Sink, o Options) *Source {
	t.Helper()
	o.Sink, o.Log = r, slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// newSilentServer answers nothing, or below /stops a few bytes and then nothing.
func newSilentServer(t *testing.T, asked chan struct{}) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		if r.URL.Path == "/stops" {
			_, _ = io.WriteString(w, "{")
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return s.URL
}
