package kube

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"

	discovery "k8s.io/api/discovery/v1"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// counter is a Sink that counts events.
type counter struct {
	applied chan int
	synced  chan struct{}
}

func (c *counter) Apply(events []ingest.Event) { c.applied <- len(events) }
func (c *counter) Reject(ingest.Rejection)     {}
func (c *counter) Accept(string, string)       {}
func (c *counter) Synced(string)               { close(c.synced) }

// One change of an EndpointSlice: from what the decoder made of it to what the Sink is told, without a server.
func BenchmarkCollect(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("endpoints=%d", n), func(b *testing.B) {
			sink := &counter{applied: make(chan int, 1)}
			source := detached(sink)
			c := newCollector(endpointSlices(b), source)
			s := usualSlice(n)
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Update(s); err != nil {
					b.Fatal(err)
				}
				source.hand(source.outbox.take())
				<-sink.applied
			}
		})
	}
}

// detached returns a source without a server.
func detached(sink ingest.Sink) *Source {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	return &Source{sink: sink, log: log, scope: newScope(Options{}), outbox: newOutbox(log, 0)}
}

// endpointSlices returns the kind of EndpointSlices.
func endpointSlices(t testing.TB) kind {
	return builtinKind(t, value.KindEndpointSlice)
}

func builtinKind(t testing.TB, name value.Kind) kind {
	builtin, _ := kindsOf(newScope(Options{}))
	for _, k := range builtin {
		if k.Name == name {
			return k
		}
	}
	t.Fatalf("no kind %v", name)
	return kind{}
}

// One change after the other, each from the write into the server to the Sink; the server is one of the test's.
func BenchmarkChange(b *testing.B) {
	api := newFakeAPI(b)
	sink := &counter{applied: make(chan int, 100), synced: make(chan struct{})}
	source, err := New(Options{Config: api.config(), Sink: sink, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- source.Run(ctx) }()
	<-sink.synced
	path, edit := "/apis/"+discovery.SchemeGroupVersion.String()+"/endpointslices", 0
	b.ReportAllocs()
	for b.Loop() {
		edit++
		api.put(path, fmt.Sprintf(`{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"namespace":"a","name":"s","labels":{"kubernetes.io/service-name":"s"}},`+
			`"addressType":"IPv4","ports":[{"name":"http","port":80}],"endpoints":[{"addresses":["10.0.%d.%d"]}]}`,
			edit>>8&255, edit&255))
		<-sink.applied
	}
	cancel()
	<-done
}
