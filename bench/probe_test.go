package bench

import (
	"context"
	"net"
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotd/pilotd/bench/fleet"
	"github.com/pilotd/pilotd/xdstype"
)

// recording is what one client asks for and is sent.
type recording struct {
	subscriptions []fleet.Subscription
	opening       map[string][]byte // the first response of each type
	endpoint      []byte            // the response to an endpoint change
	route         []byte            // and to a route change
}

// record lets one client connect to a pilotd of its own, so that the null server can send the same.
func record(b testing.TB, w *whole, delta bool) *recording {
	defer w.stop()
	transport := fleet.Memory()
	defer w.serve(transport)()
	conn, err := grpc.NewClient("passthrough:probe", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return transport.Dial() }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	must(b, err)
	defer conn.Close()
	p := newProbe(b, conn, delta)
	r := &recording{opening: map[string][]byte{}}
	names := map[string][]string{}
	for _, url := range []string{xdstype.ClusterURL, xdstype.EndpointURL, xdstype.ListenerURL, xdstype.RouteURL} {
		r.subscriptions = append(r.subscriptions, fleet.Subscription{TypeURL: url, Names: names[url]})
		got := p.subscribe(url, names[url], w.mesh.Node(0))
		r.opening[url] = p.last
		for _, a := range got {
			names[follower(url)] = append(names[follower(url)], dependencies(b, a)...)
		}
	}
	w.endpoint(0)
	p.receive()
	r.endpoint = p.last
	w.route(0)
	p.receive()
	r.route = p.last
	return r
}

func follower(url string) string {
	return map[string]string{xdstype.ClusterURL: xdstype.EndpointURL, xdstype.ListenerURL: xdstype.RouteURL}[url]
}

// dependencies returns the EDS name of a cluster, or the RDS names of a listener.
func dependencies(b testing.TB, a *anypb.Any) (out []string) {
	switch a.TypeUrl {
	case xdstype.ClusterURL:
		m := &clusterv3.Cluster{}
		must(b, a.UnmarshalTo(m))
		if m.GetType() == clusterv3.Cluster_EDS {
			out = append(out, m.Name)
		}
	case xdstype.ListenerURL:
		m := &listenerv3.Listener{}
		must(b, a.UnmarshalTo(m))
		for _, fc := range append(slices.Clone(m.GetFilterChains()), m.GetDefaultFilterChain()) {
			for _, f := range fc.GetFilters() {
				hcm := &hcmv3.HttpConnectionManager{}
				if f.GetTypedConfig().MessageIs(hcm) && f.GetTypedConfig().UnmarshalTo(hcm) == nil &&
					hcm.GetRds() != nil && !slices.Contains(out, hcm.GetRds().RouteConfigName) {
					out = append(out, hcm.GetRds().RouteConfigName)
				}
			}
		}
	}
	return out
}

// probe is a client that looks at what it gets.
type probe struct {
	b     testing.TB
	sotw  discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	delta discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	names map[string][]string
	last  []byte // the newest response
}

func newProbe(b testing.TB, conn *grpc.ClientConn, delta bool) *probe {
	p := &probe{b: b, names: map[string][]string{}}
	c := discoveryv3.NewAggregatedDiscoveryServiceClient(conn)
	var err error
	if delta {
		p.delta, err = c.DeltaAggregatedResources(b.Context())
	} else {
		p.sotw, err = c.StreamAggregatedResources(b.Context())
	}
	must(b, err)
	return p
}

// subscribe asks for a type and returns the resources of the answer.
func (p *probe) subscribe(url string, names []string, n *corev3.Node) []*anypb.Any {
	p.names[url] = names
	if p.delta != nil {
		must(p.b, p.delta.Send(&discoveryv3.DeltaDiscoveryRequest{Node: n, TypeUrl: url,
			ResourceNamesSubscribe: names}))
	} else {
		must(p.b, p.sotw.Send(&discoveryv3.DiscoveryRequest{Node: n, TypeUrl: url, ResourceNames: names}))
	}
	return p.receive()
}

// receive takes the next response and ACKs it.
func (p *probe) receive() (out []*anypb.Any) {
	var err error
	if p.delta != nil {
		r, e := p.delta.Recv()
		must(p.b, e)
		p.last, err = proto.Marshal(r)
		must(p.b, err)
		for _, res := range r.Resources {
			out = append(out, res.Resource)
		}
		must(p.b, p.delta.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce}))
		return out
	}
	r, err := p.sotw.Recv()
	must(p.b, err)
	p.last, err = proto.Marshal(r)
	must(p.b, err)
	must(p.b, p.sotw.Send(&discoveryv3.DiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce,
		VersionInfo: r.VersionInfo, ResourceNames: p.names[r.TypeUrl]}))
	return r.Resources
}
