package gen

import (
	udpapb "github.com/cncf/xds/go/udpa/type/v1"
	corspb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	faultpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	grpcstatspb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_stats/v3"
	grpcwebpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_web/v3"
	routerpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	alpnpb "istio.io/api/envoy/config/filter/http/alpn/v2alpha1"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// HTTPFilters is the chain of HTTP filters, in the order in which requests pass: who the peer is, then policies (to
// come), then what changes the request, and the router last.
func HTTPFilters(k HTTPConnectionManagerKey) []*hcmpb.HttpFilter {
	ph := k.Mesh.Config.GetDefaultConfig().GetProxyHeaders()
	var out []*hcmpb.HttpFilter
	add := func(name string, config *anypb.Any) {
		out = append(out, &hcmpb.HttpFilter{Name: name, ConfigType: &hcmpb.HttpFilter_TypedConfig{TypedConfig: config}})
	}
	if k.Filters.Has(value.HTTPPeerMetadata) {
		skip := k.Class != SidecarInbound &&
			ph.GetMetadataExchangeHeaders().GetMode() == meshconfig.ProxyConfig_ProxyHeaders_IN_MESH
		add("istio.metadata_exchange", peerMetadata(k.Class, skip))
	}
	if k.GRPCWeb {
		add("envoy.filters.http.grpc_web", anyOf(&grpcwebpb.GrpcWeb{}))
	}
	add("envoy.filters.http.grpc_stats", anyOf(&grpcstatspb.FilterConfig{
		EmitFilterState:        true,
		PerMethodStatSpecifier: &grpcstatspb.FilterConfig_StatsForAllMethods{StatsForAllMethods: wrapperspb.Bool(false)},
	}))
	if k.Class != SidecarInbound && k.Filters.Has(value.ALPN) {
		add("istio.alpn", alpn())
	}
	add("envoy.filters.http.fault", anyOf(&faultpb.HTTPFault{}))
	add("envoy.filters.http.cors", anyOf(&corspb.Cors{}))
	if k.DynamicDNS.Served {
		add("envoy.filters.http.dynamic_forward_proxy", k.DynamicDNS.filter())
	}
	add("envoy.filters.http.router",
		anyOf(&routerpb.Router{SuppressEnvoyHeaders: ph.GetEnvoyDebugHeaders().GetDisabled().GetValue()}))
	return out
}

// peerMetadata finds out who the peer is, and tells it who the proxy is: the client of an inbound listener, the server
// of the others. skip leaves the headers out of requests that leave the mesh.
func peerMetadata(class ListenerClass, skip bool) *anypb.Any {
	side := "upstream"
	if class == SidecarInbound {
		side = "downstream"
	}
	headers := map[string]any{}
	if skip {
		headers["skip_external_clusters"] = true
	}
	return typedStruct("io.istio.http.peer_metadata.Config", map[string]any{
		side + "_discovery": []any{
			map[string]any{"istio_headers": map[string]any{}},
			map[string]any{"workload_discovery": map[string]any{}},
		},
		side + "_propagation": []any{map[string]any{"istio_headers": headers}},
	})
}

// typedStruct packs the configuration of a filter whose message type is not at hand. fields hold JSON values only.
func typedStruct(messageType string, fields map[string]any) *anypb.Any {
	s, err := structpb.NewStruct(fields)
	if err != nil {
		panic("gen: " + messageType + ": " + err.Error()) // fields are this package's own
	}
	return anySorted(&udpapb.TypedStruct{TypeUrl: typePrefix + messageType, Value: s})
}

// alpn makes the protocols that a client offers to its server tell the request's own, so that the server's proxy need
// not sniff.
func alpn() *anypb.Any {
	override := func(p alpnpb.FilterConfig_Protocol, name string) *alpnpb.FilterConfig_AlpnOverride {
		return &alpnpb.FilterConfig_AlpnOverride{UpstreamProtocol: p, AlpnOverride: []string{"istio-" + name, "istio",
			name}}
	}
	return anyOf(&alpnpb.FilterConfig{AlpnOverride: []*alpnpb.FilterConfig_AlpnOverride{
		override(alpnpb.FilterConfig_HTTP10, "http/1.0"), override(alpnpb.FilterConfig_HTTP11,
			"http/1.1"), override(alpnpb.FilterConfig_HTTP2, "h2"),
	}})
}
