package gen

import (
	"math"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	httppb "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/snapshot/value"
)

// options are the HTTP options, made if there are none yet.
func (b *clusterBuilder) options() *httppb.HttpProtocolOptions {
	if b.http == nil {
		b.http = &httppb.HttpProtocolOptions{}
	}
	return b.http
}

func (b *clusterBuilder) useHTTP2() {
	b.options().UpstreamProtocolOptions = &httppb.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &httppb.HttpProtocolOptions_ExplicitHttpConfig{
		ProtocolConfig: &httppb.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: &corepb.Http2ProtocolOptions{}}}}
}

func (b *clusterBuilder) useClientProtocol() {
	b.options().UpstreamProtocolOptions = downstreamProtocol()
}

func downstreamProtocol() *httppb.HttpProtocolOptions_UseDownstreamProtocolConfig {
	return &httppb.HttpProtocolOptions_UseDownstreamProtocolConfig{UseDownstreamProtocolConfig: &httppb.HttpProtocolOptions_UseDownstreamHttpConfig{
		HttpProtocolOptions: &corepb.Http1ProtocolOptions{}, Http2ProtocolOptions: &corepb.Http2ProtocolOptions{}}}
}

// http2 are the HTTP/2 options of a cluster that speaks nothing else, or nil.
func (b *clusterBuilder) http2() *corepb.Http2ProtocolOptions {
	return b.http.GetExplicitHttpConfig().GetHttp2ProtocolOptions()
}

// protocol sets what is spoken at a port. A sidecar that sniffs the client's protocol goes on with it; a router does
// not sniff.
func (b *clusterBuilder) protocol(port value.Protocol, client value.NodeType) {
	switch {
	case port.IsHTTP2():
		b.useHTTP2()
	case port == value.Auto && client == value.SidecarProxy:
		b.useClientProtocol()
	}
}

// upgrade makes an outbound cluster an HTTP/2 one where the rule says so, or the mesh does and the port is HTTP. A port
// whose protocol is detected keeps to the protocol of the client: the server may speak no other.
func (b *clusterBuilder) upgrade(k ClusterKey, pool *networking.ConnectionPoolSettings) {
	if pool.GetHttp().GetUseClientProtocol() || b.http.GetUseDownstreamProtocolConfig() != nil {
		return
	}
	switch pool.GetHttp().GetH2UpgradePolicy() {
	case networking.ConnectionPoolSettings_HTTPSettings_UPGRADE:
		b.useHTTP2()
	case networking.ConnectionPoolSettings_HTTPSettings_DO_NOT_UPGRADE:
	default:
		if k.Port.Protocol.IsHTTP() && k.Mesh.Config.GetH2UpgradePolicy() == meshconfig.MeshConfig_UPGRADE {
			b.useHTTP2()
		}
	}
}

// pool sets timeouts, limits and keepalive. A limit of zero is none.
func (b *clusterBuilder) pool(mesh *value.Mesh, p TrafficPolicy) {
	s := p.Pool
	b.c.ConnectTimeout = mesh.Config.GetConnectTimeout()
	if t := s.GetTcp().GetConnectTimeout(); t != nil {
		b.c.ConnectTimeout = t
	}
	b.c.CircuitBreakers = thresholds(s)
	b.c.CircuitBreakers.Thresholds[0].RetryBudget = retryBudget(p.RetryBudget)
	b.keepalive(mesh.Config.GetTcpKeepalive())
	b.keepalive(s.GetTcp().GetTcpKeepalive())
	b.connections(s)
	if k, h2 := s.GetHttp().GetHttp2KeepAlive(), b.http2(); k != nil && h2 != nil {
		h2.ConnectionKeepalive = &corepb.KeepaliveSettings{Interval: k.GetInterval(), Timeout: k.GetTimeout()}
	}
	if s.GetHttp().GetUseClientProtocol() {
		b.useClientProtocol()
	}
}

// thresholds are the circuit breakers. Envoy's own default of 3 retries is too few while pods come and go, so what is
// not set is unlimited.
func thresholds(s *networking.ConnectionPoolSettings) *clusterpb.CircuitBreakers {
	limit := func(n int32) *wrapperspb.UInt32Value {
		if n > 0 {
			return wrapperspb.UInt32(uint32(n))
		}
		return wrapperspb.UInt32(math.MaxUint32)
	}
	return &clusterpb.CircuitBreakers{Thresholds: []*clusterpb.CircuitBreakers_Thresholds{{
		MaxConnections:     limit(s.GetTcp().GetMaxConnections()),
		MaxPendingRequests: limit(s.GetHttp().GetHttp1MaxPendingRequests()),
		MaxRequests:        limit(s.GetHttp().GetHttp2MaxRequests()),
		MaxRetries:         limit(s.GetHttp().GetMaxRetries()),
	}}}
}

// retryBudget limits retries to a part of what is under way, or is nil.
func retryBudget(r *networking.TrafficPolicy_RetryBudget) *clusterpb.CircuitBreakers_Thresholds_RetryBudget {
	if r == nil {
		return nil
	}
	out := &clusterpb.CircuitBreakers_Thresholds_RetryBudget{
		BudgetPercent: &typepb.Percent{Value: 20}, MinRetryConcurrency: wrapperspb.UInt32(3),
		BudgetInterval: r.GetBudgetInterval()}
	if r.GetPercent() != nil {
		out.BudgetPercent.Value = r.GetPercent().GetValue()
	}
	if n := r.GetMinRetryConcurrency(); n > 0 {
		out.MinRetryConcurrency = wrapperspb.UInt32(n)
	}
	return out
}

// connections sets how long and for how much a connection is used.
func (b *clusterBuilder) connections(s *networking.ConnectionPoolSettings) {
	idle := s.GetHttp().GetIdleTimeout()
	if idle == nil {
		idle = s.GetTcp().GetIdleTimeout()
	}
	life, requests, streams := s.GetTcp().GetMaxConnectionDuration(), s.GetHttp().GetMaxRequestsPerConnection(),
		s.GetHttp().GetMaxConcurrentStreams()
	if idle == nil && life == nil && requests <= 0 && streams <= 0 {
		return
	}
	common := &corepb.HttpProtocolOptions{IdleTimeout: idle, MaxConnectionDuration: life}
	if requests > 0 {
		common.MaxRequestsPerConnection = wrapperspb.UInt32(uint32(requests))
	}
	b.options().CommonHttpProtocolOptions = common
	if h2 := b.http2(); h2 != nil && streams > 0 {
		h2.MaxConcurrentStreams = wrapperspb.UInt32(uint32(streams))
	}
}

// keepalive lays k over what was set before. An empty k turns keepalive on with the system's own values.
func (b *clusterBuilder) keepalive(k *networking.ConnectionPoolSettings_TCPSettings_TcpKeepalive) {
	if k == nil {
		return
	}
	if b.c.UpstreamConnectionOptions == nil {
		b.c.UpstreamConnectionOptions = &clusterpb.UpstreamConnectionOptions{TcpKeepalive: &corepb.TcpKeepalive{}}
	}
	out := b.c.UpstreamConnectionOptions.TcpKeepalive
	if k.GetProbes() > 0 {
		out.KeepaliveProbes = wrapperspb.UInt32(k.GetProbes())
	}
	set := func(to **wrapperspb.UInt32Value, d *durationpb.Duration) {
		if d != nil {
			*to = wrapperspb.UInt32(uint32(d.GetSeconds()))
		}
	}
	set(&out.KeepaliveTime, k.GetTime())
	set(&out.KeepaliveInterval, k.GetInterval())
}
