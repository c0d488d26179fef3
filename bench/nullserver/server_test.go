package nullserver_test

import (
	"fmt"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"go.uber.org/goleak"

	"github.com/pilotd/pilotd/bench/fleet"
	"github.com/pilotd/pilotd/bench/nullserver"
	"github.com/pilotd/pilotd/encodecache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The null server answers the first request of each type, then sends what it is told and counts the ACKs.
func TestNullServer(t *testing.T) {
	for _, delta := range []bool{false, true} {
		t.Run(fmt.Sprint("delta=", delta), func(t *testing.T) {
			const clients = 10
			opening := map[string][]byte{}
			for _, url := range []string{"type.a", "type.b"} {
				opening[url] = encodecache.AssembleSotW(encodecache.Header{TypeURL: url, Version: "v", Nonce: "1"},
					nil).Buffers().Materialize()
			}
			s := nullserver.New(opening)
			transport := fleet.Memory()
			served := make(chan error, 1)
			go func() { served <- s.GRPC().Serve(transport) }()
			defer func() { s.GRPC().Stop(); <-served }()
			f, err := fleet.Start(fleet.Options{Clients: clients, Dial: transport.Dial, Delta: delta,
				Node:          func(i int) *corev3.Node { return &corev3.Node{Id: fmt.Sprint(i)} },
				Subscriptions: []fleet.Subscription{{TypeURL: "type.a"}, {TypeURL: "type.b", Names: []string{"x"}}}})
			must(t, err)
			defer f.Close()
			must(t, s.Await(t.Context(), 4*clients)) // two subscriptions and two ACKs each
			for i := range 3 {
				s.Broadcast(opening["type.b"])
				_, err = f.Await(t.Context(), (3+i)*clients)
				must(t, err)
				must(t, s.Await(t.Context(), (5+i)*clients))
			}
			if n := s.Requests(); n != 7*clients {
				t.Error(n, "requests")
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
