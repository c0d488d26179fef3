package parts_test

import (
	"errors"
	"net"
	"testing"
	"time"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	origdstpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/original_dst/v3"
	tcppb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	discoverypb "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
	"github.com/pilotd/pilotd/xdstype"
)

// passthrough is an xDS server that knows one answer: let everything through to where it
// wanted to go.
type passthrough struct {
	discoverypb.UnimplementedAggregatedDiscoveryServiceServer
	answers map[string]*discoverypb.DeltaDiscoveryResponse
}

func (p *passthrough) DeltaAggregatedResources(
	stream discoverypb.AggregatedDiscoveryService_DeltaAggregatedResourcesServer,
) error {
	for {
		req, err := stream.Recv()
		if err != nil {
			return err
		}
		if answer, ok := p.answers[req.TypeUrl]; ok && req.ResponseNonce == "" {
			if err := stream.Send(answer); err != nil {
				return err
			}
		}
	}
}

func packed(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	out, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func newPassthrough(t *testing.T) *passthrough {
	cluster := &clusterpb.Cluster{
		Name: "passthrough", ConnectTimeout: durationpb.New(time.Second), LbPolicy: clusterpb.Cluster_CLUSTER_PROVIDED,
		ClusterDiscoveryType: &clusterpb.Cluster_Type{Type: clusterpb.Cluster_ORIGINAL_DST},
	}
	forward := &tcppb.TcpProxy{StatPrefix: "passthrough",
		ClusterSpecifier: &tcppb.TcpProxy_Cluster{Cluster: cluster.Name}}
	listener := &listenerpb.Listener{
		Name: "outbound",
		Address: &corepb.Address{Address: &corepb.Address_SocketAddress{SocketAddress: &corepb.SocketAddress{
			Address: "0.0.0.0", PortSpecifier: &corepb.SocketAddress_PortValue{PortValue: 15001},
		}}},
		ListenerFilters: []*listenerpb.ListenerFilter{{
			Name:       "original_dst",
			ConfigType: &listenerpb.ListenerFilter_TypedConfig{TypedConfig: packed(t, &origdstpb.OriginalDst{})},
		}},
		FilterChains: []*listenerpb.FilterChain{{Filters: []*listenerpb.Filter{{
			Name:       "tcp_proxy",
			ConfigType: &listenerpb.Filter_TypedConfig{TypedConfig: packed(t, forward)},
		}}}},
	}
	p := &passthrough{answers: make(map[string]*discoverypb.DeltaDiscoveryResponse)}
	for name, m := range map[string]proto.Message{"passthrough": cluster, "outbound": listener} {
		a := packed(t, m)
		p.answers[a.TypeUrl] = &discoverypb.DeltaDiscoveryResponse{
			TypeUrl: a.TypeUrl, Nonce: name,
			Resources: []*discoverypb.Resource{{Name: name, Version: "1", Resource: a}},
		}
	}
	return p
}

// An application's connection arrives at its Envoy, the Envoy's own connection does not,
// and the tap sees what the Envoy was told.
func TestCapturedConnectionPassesEnvoyOnce(t *testing.T) {
	network := testnet.New(t)
	l, err := net.Listen("tcp", testnet.Host+":0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	discoverypb.RegisterAggregatedDiscoveryServiceServer(server, newPassthrough(t))
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	tap := parts.StartTap(t, l.Addr().String())

	backend := network.Pod(t, "10.244.2.1")
	parts.StartEcho(t, backend, ":8080", "backend")
	pod := network.Pod(t, "10.244.1.1")
	envoy := parts.StartEnvoy(t, pod, parts.EnvoySpec{
		Kind: parts.Sidecar, Protocol: parts.Delta, XDS: tap.Addr, Secrets: parts.NewAuthority(t),
		Workload: parts.Workload{Name: "app", Namespace: "shop", IP: "10.244.1.1",
			Labels: map[string]string{"app": "app"}},
	})
	envoy.AwaitReady()
	a, err := parts.Ask(pod.Client(), "http://10.244.2.1:8080/", "backend")
	if err != nil || a.Name != "backend" {
		t.Errorf("answer %+v: %v", a, err)
	}
	parts.Eventually(t, "Envoy counts one connection", func() error {
		stats, err := envoy.Stats("^cluster.passthrough.upstream_cx_total$")
		if err == nil && stats["cluster.passthrough.upstream_cx_total"] != 1 {
			err = errors.New("connections by the Envoy: not one")
		}
		return err
	})
	had := parts.Hold(tap.Passed(0))
	if len(had[xdstype.ClusterURL]) != 1 || len(had[xdstype.ListenerURL]) != 1 {
		t.Errorf("the tap saw %v", tap.Passed(0))
	}
	tap.Break()
	parts.Eventually(t, "the Envoy has both again", func() error {
		if len(had.Repeats(tap.Passed(1))) < 2 {
			return errors.New("not yet")
		}
		return nil
	})
}
