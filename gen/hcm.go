package gen

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcmpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	uuidpb "github.com/envoyproxy/go-control-plane/envoy/extensions/request_id/uuid/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// ListenerClass says on which side of which kind of proxy a listener stands.
type ListenerClass uint8

// Listener classes.
const (
	SidecarOutbound ListenerClass = iota
	SidecarInbound
	GatewayListener
	// ProxylessClient and ProxylessServer are gRPC's own, which knows no filters but fault and router.
	ProxylessClient
	ProxylessServer
)

// proxied reports whether an Envoy serves the listener, and not gRPC itself.
func (c ListenerClass) proxied() bool { return c < ProxylessClient }

// HTTPConnectionManagerKey is what an HTTP connection manager is made from.
type HTTPConnectionManagerKey struct {
	Mesh    *value.HTTPSettings
	Class   ListenerClass
	Filters value.Filters
	// HTTP10 accepts HTTP/1.0.
	HTTP10 bool
	// Access says which requests are taken.
	Access AccessKey
	// DynamicDNS lets the proxy resolve the hosts of requests that are routed to AllowAnyDynamicDNSCluster.
	DynamicDNS DynamicDNS
	// GRPCWeb translates gRPC-Web, HTTP2 sets the HTTP/2 options; both stand for the port's declared protocol.
	GRPCWeb, HTTP2 bool
	// StatPrefix without the ";" that ends it.
	StatPrefix string
	// RouteName is the RouteConfiguration that RDS gives; empty where the caller puts the routes in place.
	RouteName string
}

// HTTPConnectionManager returns the filter that serves HTTP, for sidecars and gateways alike. Settings of one noun
// alone (inline routes, trusted hops) are set by the caller on the result.
func HTTPConnectionManager(k HTTPConnectionManagerKey) *hcmpb.HttpConnectionManager {
	m := &hcmpb.HttpConnectionManager{
		StatPrefix:                   k.StatPrefix + ";",
		HttpFilters:                  HTTPFilters(k),
		UseRemoteAddress:             wrapperspb.Bool(k.Class == GatewayListener),
		StreamIdleTimeout:            durationpb.New(0),
		Proxy_100Continue:            true,
		PathWithEscapedSlashesAction: hcmpb.HttpConnectionManager_KEEP_UNCHANGED,
		UpgradeConfigs:               []*hcmpb.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}},
		RequestIdExtension: &hcmpb.RequestIDExtension{TypedConfig: anyOf(&uuidpb.UuidRequestIdConfig{
			UseRequestIdForTraceSampling: wrapperspb.Bool(true),
		})},
	}
	if k.RouteName != "" {
		m.RouteSpecifier = &hcmpb.HttpConnectionManager_Rds{Rds: &hcmpb.Rds{ConfigSource: adsSource(),
			RouteConfigName: k.RouteName}}
	}
	setProtocols(m, k)
	setPathNormalization(m, k.Mesh.Paths)
	setProxyHeaders(m, k.Class, k.Mesh)
	return m
}

// adsSource returns the stream that the resource came by, waited for without limit.
func adsSource() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		InitialFetchTimeout:   durationpb.New(0),
		ResourceApiVersion:    corev3.ApiVersion_V3,
	}
}

func setProtocols(m *hcmpb.HttpConnectionManager, k HTTPConnectionManagerKey) {
	if k.HTTP10 || k.Class == GatewayListener {
		m.HttpProtocolOptions = &corev3.Http1ProtocolOptions{AcceptHttp_10: k.HTTP10}
	}
	if k.HTTP2 && k.Class == SidecarInbound {
		m.Http2ProtocolOptions = &corev3.Http2ProtocolOptions{}
	}
}

func setPathNormalization(m *hcmpb.HttpConnectionManager, p value.PathNormalization) {
	m.NormalizePath = wrapperspb.Bool(p != value.LeavePaths)
	switch p {
	case value.MergeSlashes:
		m.MergeSlashes = true
	case value.DecodeSlashes:
		m.MergeSlashes = true
		m.PathWithEscapedSlashesAction = hcmpb.HttpConnectionManager_UNESCAPE_AND_FORWARD
	}
}

// setProxyHeaders sets what the proxy tells about itself and about the client's certificate.
func setProxyHeaders(m *hcmpb.HttpConnectionManager, class ListenerClass, s *value.HTTPSettings) {
	if class != SidecarOutbound {
		m.ServerName = "istio-envoy"
	}
	if s.KeepServer {
		m.ServerName, m.ServerHeaderTransformation = "", hcmpb.HttpConnectionManager_PASS_THROUGH
	} else if s.ServerName != "" {
		m.ServerName = s.ServerName
	}
	if s.NoRequestID {
		m.GenerateRequestId = wrapperspb.Bool(false)
	}
	switch class {
	case SidecarInbound:
		m.ForwardClientCertDetails = hcmpb.HttpConnectionManager_APPEND_FORWARD
		if s.ForwardCert != value.ForwardUnset {
			m.ForwardClientCertDetails = forwardCert(s.ForwardCert)
		}
		m.SetCurrentClientCertDetails = certDetails(s.Cert, false)
	case GatewayListener:
		m.ForwardClientCertDetails = hcmpb.HttpConnectionManager_SANITIZE_SET
		m.SetCurrentClientCertDetails = certDetails(s.Cert, true)
	}
}

// forwardCert returns how Envoy calls a setting of the mesh.
func forwardCert(f value.ForwardCert) hcmpb.HttpConnectionManager_ForwardClientCertDetails {
	switch f {
	case value.ForwardOnly:
		return hcmpb.HttpConnectionManager_FORWARD_ONLY
	case value.AppendForward:
		return hcmpb.HttpConnectionManager_APPEND_FORWARD
	case value.SanitizeSet:
		return hcmpb.HttpConnectionManager_SANITIZE_SET
	case value.AlwaysForwardOnly:
		return hcmpb.HttpConnectionManager_ALWAYS_FORWARD_ONLY
	}
	return hcmpb.HttpConnectionManager_SANITIZE
}

// certDetails returns the parts of the client's certificate that are told; whole is whether all of it is by default.
func certDetails(d value.CertDetails, whole bool) *hcmpb.HttpConnectionManager_SetCurrentClientCertDetails {
	return &hcmpb.HttpConnectionManager_SetCurrentClientCertDetails{
		Subject: wrapperspb.Bool(d.Subject.Or(true)),
		Cert:    d.Cert.Or(whole),
		Chain:   d.Chain.Or(false),
		Dns:     d.DNS.Or(true),
		Uri:     d.URI.Or(true),
	}
}
