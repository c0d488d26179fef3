package fleet_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotd/pilotd/bench/fleet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a server of the generated stubs that answers each first request with a big response, and checks what it is
// told.
type script struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	names []string
	ends  chan error
}

// resource returns a resource that is big enough for several HTTP/2 frames.
func resource() *anypb.Any { return &anypb.Any{TypeUrl: "x", Value: make([]byte, 50_000)} }

func (s *script) StreamAggregatedResources(
	c discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer,
) error {
	s.ends <- func() error {
		for i, url := range []string{"type.a", "type.b"} {
			names := [][]string{nil, s.names}[i]
			first, err := c.Recv()
			if err != nil {
				return err
			}
			if first.TypeUrl != url || !slices.Equal(first.ResourceNames, names) || first.ResponseNonce != "" ||
				(first.Node != nil) != (i == 0) {
				return fmt.Errorf("first request for %s is for %s, %d names, node %v", url, first.TypeUrl,
					len(first.ResourceNames), first.Node)
			}
			nonce := fmt.Sprint("nonce of ", url)
			if err := c.Send(&discoveryv3.DiscoveryResponse{TypeUrl: url, VersionInfo: "v" + url, Nonce: nonce,
				Resources:    []*anypb.Any{resource()},
				ControlPlane: &corev3.ControlPlane{Identifier: strings.Repeat("x", 300)}}); err != nil {
				return err
			}
			ack, err := c.Recv()
			if err != nil {
				return err
			}
			if ack.TypeUrl != url || !slices.Equal(ack.ResourceNames, names) || ack.ResponseNonce != nonce ||
				ack.VersionInfo != "v"+url {
				return fmt.Errorf("ACK: %s %s %s, %d names", ack.TypeUrl, ack.ResponseNonce, ack.VersionInfo,
					len(ack.ResourceNames))
			}
		}
		return nil
	}()
	<-c.Context().Done()
	return nil
}

func (s *script) DeltaAggregatedResources(
	c discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer,
) error {
	s.ends <- func() error {
		first, err := c.Recv()
		if err != nil {
			return err
		}
		if first.TypeUrl != "type.a" || first.Node.GetId() != "node-0" {
			return fmt.Errorf("first request: %v", first)
		}
		if err := c.Send(&discoveryv3.DeltaDiscoveryResponse{TypeUrl: "type.a", Nonce: "7", SystemVersionInfo: "s",
			RemovedResources: []string{"gone"},
			Resources:        []*discoveryv3.Resource{{Name: "r", Resource: resource()}}}); err != nil {
			return err
		}
		ack, err := c.Recv()
		if err != nil {
			return err
		}
		if ack.TypeUrl != "type.a" || ack.ResponseNonce != "7" || ack.ResourceNamesSubscribe != nil {
			return fmt.Errorf("ACK: %v", ack)
		}
		second, err := c.Recv()
		if err != nil {
			return err
		}
		if second.TypeUrl != "type.b" || !slices.Equal(second.ResourceNamesSubscribe, s.names) {
			return fmt.Errorf("second subscription: %s", second.TypeUrl)
		}
		return nil
	}()
	return errors.New("enough")
}

// run runs a fleet against a script.
func run(t *testing.T, delta bool, clients int) (*fleet.Fleet, *script) {
	t.Helper()
	s := &script{ends: make(chan error, clients)}
	for i := range 3000 { // more than the server's window takes at once
		s.names = append(s.names, fmt.Sprintf("outbound|80||service-%d.ns.svc.cluster.local", i))
	}
	g := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, s)
	transport, err := fleet.Unix(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(transport) }()
	t.Cleanup(func() { g.Stop(); <-served })
	f, err := fleet.Start(fleet.Options{Clients: clients, Dial: transport.Dial, Delta: delta,
		Node:          func(i int) *corev3.Node { return &corev3.Node{Id: fmt.Sprint("node-", i)} },
		Subscriptions: []fleet.Subscription{{TypeURL: "type.a"}, {TypeURL: "type.b", Names: s.names}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f, s
}

func TestStateOfTheWorld(t *testing.T) {
	const clients = 5
	f, s := run(t, false, clients)
	if _, err := f.Await(t.Context(), 2*clients); err != nil {
		t.Fatal(err)
	}
	for range clients {
		if err := <-s.ends; err != nil {
			t.Error(err)
		}
	}
	if n, bytes := f.Responses(); n != 2*clients || bytes < n*50_000 {
		t.Error(n, "responses of", bytes, "bytes")
	}
}

func TestDelta(t *testing.T) {
	f, s := run(t, true, 1)
	if err := <-s.ends; err != nil {
		t.Error(err)
	}
	// The server ends the stream: Await says so.
	if _, err := f.Await(t.Context(), 100); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Error(err)
	}
}

// Close ends all that keeps the processors busy: TestMain finds what goes on.
func TestBusyEnds(t *testing.T) {
	b := fleet.StartBusy(0.01)
	if at, err := b.Await(t.Context(), 0); at.IsZero() || err != nil {
		t.Error(at, err)
	}
	b.Close()
}
