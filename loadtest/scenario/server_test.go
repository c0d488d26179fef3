package scenario_test

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotd/pilotd/loadtest/mesh"
	"github.com/pilotd/pilotd/loadtest/scenario"
	"github.com/pilotd/pilotd/loadtest/wire"
	"github.com/pilotd/pilotd/xdstype"
)

// testServer is a server of a mesh's first services, and the mesh that is edited: an edit is pushed to everybody at
// once.
type testServer struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	t    *testing.T
	mesh *mesh.Mesh

	mu sync.Mutex
	// Guarded by mu.
	// the types that each asked for
	streams map[discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer]map[string]bool
	address []string // by service
	path    string
	calls   []string
	nodes   []string
}

const services = 3

func build(t *testing.T) *testServer {
	w := &testServer{t: t, mesh: mesh.New(mesh.Usual(services)), path: "/", address: make([]string, services),
		streams: map[discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer]map[string]bool{}}
	for i := range w.address {
		w.address[i] = "10.0.0.1"
	}
	return w
}

// serve serves it, and returns where.
func (w *testServer) serve() (wire.Endpoint, *grpc.Server) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(w.t, err)
	g := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, w)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	w.t.Cleanup(func() { g.Stop(); <-served })
	return wire.At(l.Addr().String()), g
}

// StreamAggregatedResources implements the generated interface.
func (w *testServer) StreamAggregatedResources(
	s discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer,
) error {
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.streams, s)
	}()
	for {
		r, err := s.Recv()
		if err != nil {
			return err
		}
		if r.ResponseNonce != "" {
			continue
		}
		w.mu.Lock()
		if w.streams[s] == nil {
			w.streams[s] = map[string]bool{}
			w.nodes = append(w.nodes, r.Node.GetId())
		}
		w.streams[s][r.TypeUrl] = true
		err = s.Send(w.response(r.TypeUrl))
		w.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// response returns what there is of a type. The caller holds mu.
func (w *testServer) response(url string) *discoveryv3.DiscoveryResponse {
	out := &discoveryv3.DiscoveryResponse{TypeUrl: url, Nonce: "1", VersionInfo: "1"}
	add := func(m proto.Message) {
		a, err := anypb.New(m)
		must(w.t, err)
		out.Resources = append(out.Resources, a)
	}
	name := func(s int) string { return "outbound|80||" + w.mesh.Host(s) }
	switch url {
	case xdstype.Cluster.URL():
		for s := range services {
			add(&clusterv3.Cluster{Name: name(s),
				ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}})
		}
	case xdstype.Endpoint.URL():
		for s := range services {
			add(&endpointv3.ClusterLoadAssignment{ClusterName: name(s),
				NamedEndpoints: map[string]*endpointv3.Endpoint{w.address[s]: {}}})
		}
	case xdstype.Listener.URL():
		manager, err := anypb.New(
			&hcmv3.HttpConnectionManager{
				RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{RouteConfigName: "80"}},
			},
		)
		must(w.t, err)
		add(&listenerv3.Listener{Name: "l", FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{
			{ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: manager}}}}}})
	case xdstype.Route.URL():
		add(&routev3.RouteConfiguration{Name: "80", VirtualHosts: []*routev3.VirtualHost{{Name: w.path}}})
	}
	return out
}

// edit makes a change and pushes it.
func (w *testServer) edit(call string, of xdstype.Type, change func()) (time.Time, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, call)
	change()
	at := time.Now()
	for s, types := range w.streams {
		if types[of.URL()] {
			_ = s.Send(w.response(of.URL())) // to one that has left it fails
		}
	}
	return at, nil
}

func (w *testServer) Endpoint(service, n int) (time.Time, error) {
	return w.edit(fmt.Sprint("endpoint ", service, " ", n), xdstype.Endpoint,
		func() { w.address[service] = mesh.Address(n) })
}

func (w *testServer) Route(n int) (time.Time, error) {
	return w.edit(fmt.Sprint("route ", n), xdstype.Route, func() { w.path = mesh.Path(n) })
}

func (w *testServer) AddRoute(n int) (time.Time, error) {
	return w.edit(fmt.Sprint("add ", n), xdstype.Route, func() { w.path = mesh.Path(n) })
}

func (w *testServer) RemoveRoute(n int) (time.Time, error) {
	return w.edit(fmt.Sprint("remove ", n), xdstype.Route, func() { w.path = "/" })
}

func (w *testServer) Replace(i, n int) (time.Time, error) {
	return w.edit(fmt.Sprint("replace ", i, " ", n), xdstype.Endpoint,
		func() { w.address[w.mesh.ServiceOf(i)] = mesh.Address(n) })
}

func (w *testServer) Successor(i, n int) *corev3.Node {
	return &corev3.Node{Id: fmt.Sprint("new ", i, " ", n)}
}

func (w *testServer) Lanes() int { return 2 }

func (w *testServer) Restore() error { return nil }

// options returns those of a run against the server.
func (w *testServer) options(target wire.Endpoint, clients int, scenarios ...string) scenario.Options {
	return scenario.Options{Targets: []wire.Endpoint{target}, Clients: scenario.Clients{Sidecars: clients},
		Mesh: w.mesh, Edits: w,
		Scenarios: scenarios, Changes: 2, Rate: 1000, Duration: 20 * time.Millisecond, Share: 0.5, ReadRate: 1 << 30,
		Patience: time.Minute}
}
