package gen

import (
	udpapb "github.com/cncf/xds/go/udpa/type/v1"
	rbacpb "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	corspb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	faultpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	grpcstatspb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_stats/v3"
	grpcwebpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_web/v3"
	routerpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	alpnpb "istio.io/api/envoy/config/filter/http/alpn/v2alpha1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// httpFilterList returns every HTTP filter, in the order in which requests pass.
func httpFilterList() []filterRow[HTTPConnectionManagerKey] {
	proxied := func(k HTTPConnectionManagerKey) bool { return k.Class.proxied() }
	return []filterRow[HTTPConnectionManagerKey]{
		// Who the peer is: policies and telemetry read what it finds out.
		{name: "istio.metadata_exchange", needs: value.HTTPPeerMetadata, applies: proxied, config: peerMetadata},

		// The policies of a workload stand here, before anything changes the request: authorization by outside servers,
		// JWT authentication, authorization; WebAssembly before, between or after them as its phase says.
		customHTTP(),
		askHTTP(),
		{name: tokenFilter, config: tokens,
			applies: func(k HTTPConnectionManagerKey) bool {
				return !k.Access.GRPC && len(tokenRules(k.Access.Policies)) > 0
			}},
		accessHTTP(value.AuditAction),
		accessHTTP(value.DenyAction),
		accessHTTP(value.AllowAction),
		accessGRPC(httpRBAC+".DENY", rbacpb.RBAC_DENY, value.DenyAction, value.CustomAction),
		accessGRPC(httpRBAC, rbacpb.RBAC_ALLOW, value.AllowAction),

		{name: "envoy.filters.http.grpc_web", config: grpcWeb,
			applies: func(k HTTPConnectionManagerKey) bool { return k.GRPCWeb }},
		{name: "envoy.filters.http.grpc_stats", applies: proxied, config: grpcStats},
		{name: "istio.alpn", needs: value.ALPN, config: alpn,
			applies: func(k HTTPConnectionManagerKey) bool { return proxied(k) && k.Class != SidecarInbound }},
		{name: faultFilter, config: fixed(&faultpb.HTTPFault{}),
			applies: func(k HTTPConnectionManagerKey) bool { return k.Class != ProxylessServer }},
		{name: corsFilter, applies: proxied, config: fixed(&corspb.Cors{})},

		// The telemetry of a workload stands here, after all that may answer in place of the server.

		{name: "envoy.filters.http.dynamic_forward_proxy", needs: value.ForwardProxyFilter,
			applies: func(k HTTPConnectionManagerKey) bool { return k.DynamicDNS.Served },
			config:  func(k HTTPConnectionManagerKey) *anypb.Any { return k.DynamicDNS.filter() }},
		{name: "envoy.filters.http.router", config: router},
	}
}

// Names of the filters that routes have settings for.
const (
	faultFilter = "envoy.filters.http.fault"
	corsFilter  = "envoy.filters.http.cors"
)

// fixed returns the configuration of a filter that depends on nothing.
func fixed(m proto.Message) func(HTTPConnectionManagerKey) *anypb.Any {
	return func(HTTPConnectionManagerKey) *anypb.Any { return anyOf(m) }
}

func grpcWeb(HTTPConnectionManagerKey) *anypb.Any { return anyOf(&grpcwebpb.GrpcWeb{}) }

func grpcStats(HTTPConnectionManagerKey) *anypb.Any {
	return anyOf(&grpcstatspb.FilterConfig{
		EmitFilterState:        true,
		PerMethodStatSpecifier: &grpcstatspb.FilterConfig_StatsForAllMethods{StatsForAllMethods: wrapperspb.Bool(false)},
	})
}

// router forwards requests. gRPC clients and servers know no settings of it.
func router(k HTTPConnectionManagerKey) *anypb.Any {
	if !k.Class.proxied() {
		return anyOf(&routerpb.Router{})
	}
	return anyOf(&routerpb.Router{SuppressEnvoyHeaders: k.Mesh.NoDebugHeaders})
}

// peerMetadata finds out who the peer is, and tells it who the proxy is: the client of an inbound listener, the server
// of the others. The mesh may say that requests that leave the mesh carry no headers for it.
func peerMetadata(k HTTPConnectionManagerKey) *anypb.Any {
	side, headers := "downstream", map[string]any{}
	if k.Class != SidecarInbound {
		side = "upstream"
		if k.Mesh.MetadataInMesh {
			headers["skip_external_clusters"] = true
		}
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
func alpn(HTTPConnectionManagerKey) *anypb.Any {
	override := func(p alpnpb.FilterConfig_Protocol, name string) *alpnpb.FilterConfig_AlpnOverride {
		return &alpnpb.FilterConfig_AlpnOverride{UpstreamProtocol: p, AlpnOverride: []string{"istio-" + name, "istio",
			name}}
	}
	return anyOf(&alpnpb.FilterConfig{AlpnOverride: []*alpnpb.FilterConfig_AlpnOverride{
		override(alpnpb.FilterConfig_HTTP10, "http/1.0"), override(alpnpb.FilterConfig_HTTP11,
			"http/1.1"), override(alpnpb.FilterConfig_HTTP2, "h2"),
	}})
}
