package parts

import (
	"context"
	"fmt"
	"testing"
	"time"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discoverypb "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotd/pilotd/xdstype"
)

// Dump is everything that pilotd sends to one proxy.
type Dump struct {
	Clusters  []*clusterpb.Cluster
	Endpoints []*endpointpb.ClusterLoadAssignment
	Listeners []*listenerpb.Listener
	Routes    []*routepb.RouteConfiguration
}

// Fetch requests what that workload's Envoy would, type by type, over SotW ADS. extensions are those of the Envoy for
// which the answers are meant.
func Fetch(t testing.TB, xds string, kind ProxyKind, w Workload, extensions []*corepb.Extension) Dump {
	t.Helper()
	conn, err := grpc.NewClient(xds, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	stream, err := discoverypb.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	metadata := w.metadata()
	metadata["LABELS"] = anyMap(w.Labels)
	fields, err := structpb.NewStruct(metadata)
	if err != nil {
		t.Fatal(err)
	}
	f := &fetch{stream: stream, node: &corepb.Node{Id: w.nodeID(string(kind)), Metadata: fields,
		Extensions: extensions}}
	d, err := f.all()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func anyMap(in map[string]string) map[string]any {
	out := make(map[string]any, len(in))
	for k, v := range in {
		out[k] = v
	}
	return out
}

// fetch is a stream that requests one type after the other.
type fetch struct {
	stream discoverypb.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	node   *corepb.Node
}

func (f *fetch) all() (Dump, error) {
	var d Dump
	err := ask(f, xdstype.ClusterURL, nil, &d.Clusters)
	if err != nil {
		return d, err
	}
	var services []string
	for _, c := range d.Clusters {
		if c.GetType() == clusterpb.Cluster_EDS {
			services = append(services, c.Name)
		}
	}
	if err := ask(f, xdstype.EndpointURL, services, &d.Endpoints); err != nil {
		return d, err
	}
	if err := ask(f, xdstype.ListenerURL, nil, &d.Listeners); err != nil {
		return d, err
	}
	routes := make(map[string]bool)
	for _, l := range d.Listeners {
		_, err := eachHTTP(l, func(h *hcmpb.HttpConnectionManager) {
			if name := h.GetRds().GetRouteConfigName(); name != "" {
				routes[name] = true
			}
		})
		if err != nil {
			return d, err
		}
	}
	var names []string
	for name := range routes {
		names = append(names, name)
	}
	return d, ask(f, xdstype.RouteURL, names, &d.Routes)
}

// ask requests one type, validates the answer and appends its resources to out.
func ask[M interface {
	proto.Message
	ValidateAll() error
}](f *fetch, typeURL string, names []string, out *[]M) error {
	if names != nil && len(names) == 0 {
		return nil
	}
	req := &discoverypb.DiscoveryRequest{Node: f.node, TypeUrl: typeURL, ResourceNames: names}
	if err := f.stream.Send(req); err != nil {
		return err
	}
	for {
		resp, err := f.stream.Recv()
		if err != nil {
			return fmt.Errorf("%s: %w", short(typeURL), err)
		}
		// An earlier type may be sent again; as nothing changes, it is the same.
		if resp.TypeUrl != typeURL {
			continue
		}
		for _, packed := range resp.Resources {
			m, err := packed.UnmarshalNew()
			if err != nil {
				return fmt.Errorf("%s: %w", short(typeURL), err)
			}
			if err := m.(M).ValidateAll(); err != nil {
				return fmt.Errorf("%s: %w", short(typeURL), err)
			}
			*out = append(*out, m.(M))
		}
		return f.stream.Send(&discoverypb.DiscoveryRequest{
			TypeUrl: typeURL, ResourceNames: names, VersionInfo: resp.VersionInfo, ResponseNonce: resp.Nonce,
		})
	}
}

// eachHTTP calls f with each HTTP connection manager of l, and returns l with the changes that f made.
func eachHTTP(l *listenerpb.Listener, f func(*hcmpb.HttpConnectionManager)) (*listenerpb.Listener, error) {
	l = proto.CloneOf(l)
	chains := l.FilterChains
	if l.DefaultFilterChain != nil {
		chains = append(chains[:len(chains):len(chains)], l.DefaultFilterChain)
	}
	for _, chain := range chains {
		for _, filter := range chain.Filters {
			var h hcmpb.HttpConnectionManager
			if !filter.GetTypedConfig().MessageIs(&h) {
				continue
			}
			if err := filter.GetTypedConfig().UnmarshalTo(&h); err != nil {
				return nil, fmt.Errorf("listener %s: %w", l.Name, err)
			}
			if err := h.ValidateAll(); err != nil {
				return nil, fmt.Errorf("listener %s: %w", l.Name, err)
			}
			f(&h)
			packed, err := anypb.New(&h)
			if err != nil {
				return nil, err
			}
			filter.ConfigType = &listenerpb.Filter_TypedConfig{TypedConfig: packed}
		}
	}
	return l, nil
}
