package secure

import (
	"context"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"

	"github.com/pilotd/pilotd/xdstype"
)

const goneCluster = "outbound|80||gone.shop.svc.cluster.local"

// answered reads responses, each ACKed, until one is about a name, and fails if that does not come.
func (s *stream) answered(url, name string) {
	s.h.t.Helper()
	for {
		r, err := s.Recv()
		if err != nil {
			s.h.t.Fatalf("%s %s is not answered: %v", url, name, err)
		}
		s.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce})
		of := slices.Clone(r.RemovedResources)
		for _, one := range r.Resources {
			of = append(of, one.Name)
		}
		if r.TypeUrl == url && slices.Contains(of, name) {
			return
		}
	}
}

// agentFirstRequest: with all of Envoy's extensions it has 62 KB and more.
func agentFirstRequest(h *house) {
	n := node("sidecar", "shop", "web")
	n.UserAgentName = "envoy"
	for i := range 516 {
		n.Extensions = append(n.Extensions, &corev3.Extension{Category: "envoy.filters.http",
			Name:     fmt.Sprintf("envoy.filters.http.extension_%d", i),
			TypeUrls: []string{fmt.Sprintf("envoy.extensions.filters.http.extension_%d.v3.Extension", i)}})
	}
	h.begins("web", n, agent{})
}

// agentNames: a cluster without endpoints, and a route that nobody has, keep Envoy from starting until they are
// answered.
func agentNames(h *house) {
	s := h.open("web", agent{})
	defer s.close()
	s.send(&discoveryv3.DeltaDiscoveryRequest{Node: node("sidecar", "shop", "web"), TypeUrl: xdstype.ClusterURL})
	s.next(xdstype.ClusterURL)
	for url, name := range map[string]string{xdstype.EndpointURL: goneCluster, xdstype.RouteURL: "8080"} {
		s.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: url, ResourceNamesSubscribe: []string{name}})
		s.answered(url, name)
	}
}

// agentEndpointsAlone: an Envoy whose cluster was warming when its stream ended asks for endpoints, and for nothing
// else.
func agentEndpointsAlone(h *house) {
	s := h.open("web", agent{})
	defer s.close()
	s.send(&discoveryv3.DeltaDiscoveryRequest{Node: node("sidecar", "shop", "web"), TypeUrl: xdstype.EndpointURL,
		ResourceNamesSubscribe: []string{goneCluster}, InitialResourceVersions: map[string]string{}})
	s.answered(xdstype.EndpointURL, goneCluster)
}

// agentNameTable: on each stream it wants the whole table, in one resource, for it says nothing of what it has.
func agentNameTable(h *house) {
	for range 2 {
		s := h.open("web", agent{})
		s.send(&discoveryv3.DeltaDiscoveryRequest{Node: node("sidecar", "shop", "web"), TypeUrl: xdstype.ClusterURL})
		s.next(xdstype.ClusterURL)
		s.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xdstype.NameTableURL})
		if r := s.next(xdstype.NameTableURL); len(r.Resources) != 1 || r.Resources[0].Resource == nil {
			h.t.Error("it would wait for ever:", r)
		}
		s.close()
	}
}

// agentHealth: what it tells of an application that is not well looks like a refusal and is none.
func agentHealth(h *house) {
	s := h.open("web", agent{})
	defer s.close()
	s.send(&discoveryv3.DeltaDiscoveryRequest{Node: node("sidecar", "shop", "web"), TypeUrl: xdstype.ClusterURL})
	s.next(xdstype.ClusterURL)
	for range 3 {
		s.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: health})
		s.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: health, ErrorDetail: &statuspb.Status{Code: 13, Message: "not well"}})
	}
	s.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xdstype.ListenerURL})
	s.next(xdstype.ListenerURL)
}

// agentNamespace: where the metadata has no namespace the domain of the node's id has.
func agentNamespace(h *house) {
	n := node("sidecar", "shop", "web")
	delete(n.Metadata.Fields, "NAMESPACE")
	h.begins("web", n, agent{})
	n.Id = "sidecar~10.1.0.1~app-1.bank~bank.svc.cluster.local"
	s := h.open("web", agent{})
	s.send(&discoveryv3.DeltaDiscoveryRequest{Node: n, TypeUrl: xdstype.ClusterURL})
	s.ends(codes.PermissionDenied)
}

// agentStateOfTheWorld is an agent with ISTIO_DELTA_XDS=false.
func agentStateOfTheWorld(h *house) {
	conn := h.dial(agent{})
	defer conn.Close()
	ctx, cancel := context.WithTimeout(with("web"), time.Hour)
	defer cancel()
	s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	send := func(r *discoveryv3.DiscoveryRequest) {
		if err := s.Send(r); err != nil {
			h.t.Fatal(err)
		}
	}
	send(&discoveryv3.DiscoveryRequest{Node: node("sidecar", "shop", "web"), TypeUrl: xdstype.ClusterURL})
	for _, url := range []string{xdstype.ClusterURL, xdstype.ListenerURL, xdstype.NameTableURL} {
		if url != xdstype.ClusterURL {
			send(&discoveryv3.DiscoveryRequest{TypeUrl: url})
		}
		r, err := s.Recv()
		if err != nil || r.TypeUrl != url || len(r.Resources) == 0 {
			h.t.Fatalf("%v, %v; want %s", r, err, url)
		}
		send(&discoveryv3.DiscoveryRequest{TypeUrl: url, VersionInfo: r.VersionInfo, ResponseNonce: r.Nonce})
	}
	send(&discoveryv3.DiscoveryRequest{TypeUrl: health, ErrorDetail: &statuspb.Status{Code: 13, Message: "not well"}})
	synctest.Wait()
	if h.streams.Streams.Streams() != 1 {
		h.t.Error("the stream ended")
	}
}
