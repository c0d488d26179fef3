package sidecar

import (
	"context"
	"flag"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotd/pilotd/loadtest/wire"
	"github.com/pilotd/pilotd/xdstype"
)

func TestMain(m *testing.M) {
	flag.Bool("update", false, "write the transcripts anew")
	goleak.VerifyTestMain(m)
}

func node(id string) *corev3.Node { return &corev3.Node{Id: id} }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// server answers every subscription once, with resources that are big enough for several HTTP/2 frames.
type server struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	opening map[string][]*anypb.Any
}

// StreamAggregatedResources implements the generated interface.
func (s *server) StreamAggregatedResources(
	c discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer,
) error {
	for {
		r, err := c.Recv()
		if err != nil {
			return err
		}
		if r.ResponseNonce != "" {
			continue
		}
		if err := c.Send(&discoveryv3.DiscoveryResponse{TypeUrl: r.TypeUrl, VersionInfo: "1", Nonce: "1",
			Resources: s.opening[r.TypeUrl]}); err != nil {
			return err
		}
	}
}

func TestFleetConnects(t *testing.T) {
	const clients = 20
	big := cluster("a", "1")
	big.Metadata = &corev3.Metadata{TypedFilterMetadata: map[string]*anypb.Any{"x": {Value: make([]byte, 40_000)}}}
	s := &server{opening: map[string][]*anypb.Any{xdstype.Cluster.URL(): {wrap(t, big)},
		xdstype.Endpoint.URL(): {wrap(t, endpoints("a", "10.0.0.1"))},
		xdstype.Listener.URL(): {
			wrap(t, listener(t, "l", "80", false)),
		}, xdstype.Route.URL(): {wrap(t, routes("80", "x"))}}}
	g := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, s)
	l := bufconn.Listen(64 << 10)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	defer func() { g.Stop(); <-served }()

	ready := make(chan int, clients)
	f, err := Start(t.Context(), Options{Clients: clients, Dialing: 3,
		Dial: func(ctx context.Context, _, _ int) (net.Conn, wire.Header, error) {
			conn, err := l.DialContext(ctx)
			return conn, wire.Header{Authority: "test"}, err
		},
		Spec: func(i int) (Spec, error) {
			b, err := proto.Marshal(node(fmt.Sprint("n", i)))
			return Spec{Node: b}, err
		},
		Observe: func(i int, _ time.Time, r *Receipt) {
			if r.Ready {
				ready <- i
			}
		},
		Ended: func(i int, err error) { t.Errorf("client %d: %v", i, err) }})
	must(t, err)
	seen := map[int]bool{}
	for range clients {
		seen[<-ready] = true
	}
	f.Close()
	if len(seen) != clients || f.Resources() != 4 {
		t.Error(len(seen), "clients,", f.Resources(), "resources")
	}
	for of, c := range f.Counts() {
		want := int64(clients)
		if !slices.Contains(Types(), xdstype.Type(of)) {
			want = 0
		}
		if c.Messages != want || c.Useless != 0 {
			t.Errorf("%d: %+v", of, c)
		}
	}
}
