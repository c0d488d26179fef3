package gen

import (
	"math"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	httppb "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// options returns the HTTP options, made if there are none yet.
func (b *clusterBuilder) options() *httppb.HttpProtocolOptions {
	if b.http == nil {
		b.http = &httppb.HttpProtocolOptions{}
	}
	return b.http
}

func (b *clusterBuilder) useHTTP2() {
	b.options().UpstreamProtocolOptions = &httppb.HttpProtocolOptions_ExplicitHttpConfig_{
		ExplicitHttpConfig: &httppb.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &httppb.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
				Http2ProtocolOptions: &corepb.Http2ProtocolOptions{}}}}
}

func (b *clusterBuilder) useClientProtocol() {
	b.options().UpstreamProtocolOptions = downstreamProtocol()
}

func downstreamProtocol() *httppb.HttpProtocolOptions_UseDownstreamProtocolConfig {
	return &httppb.HttpProtocolOptions_UseDownstreamProtocolConfig{
		UseDownstreamProtocolConfig: &httppb.HttpProtocolOptions_UseDownstreamHttpConfig{
			HttpProtocolOptions: &corepb.Http1ProtocolOptions{}, Http2ProtocolOptions: &corepb.Http2ProtocolOptions{}}}
}

// http2 returns the HTTP/2 options of a cluster that speaks nothing else, or nil.
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
func (b *clusterBuilder) upgrade(k ClusterKey, pool *value.ConnectionPool) {
	if pool == nil {
		pool = &value.ConnectionPool{}
	}
	if pool.UseClientProtocol || b.http.GetUseDownstreamProtocolConfig() != nil {
		return
	}
	if pool.Upgrade.Or(k.Mesh.Upgrade && k.Port.Protocol.IsHTTP()) {
		b.useHTTP2()
	}
}

// pool sets timeouts, limits and keepalive.
func (b *clusterBuilder) pool(mesh *value.ConnectionSettings, p value.TrafficPolicy) {
	s := p.Pool
	if s == nil {
		s = &value.ConnectionPool{}
	}
	b.c.ConnectTimeout = duration(mesh.ConnectTimeout)
	if s.ConnectTimeout.Set {
		b.c.ConnectTimeout = duration(s.ConnectTimeout)
	}
	b.c.CircuitBreakers = thresholds(s)
	b.c.CircuitBreakers.Thresholds[0].RetryBudget = retryBudget(p.RetryBudget)
	b.keepalive(mesh.Keepalive)
	b.keepalive(s.Keepalive)
	b.connections(s)
	if h2 := b.http2(); s.Pinged && h2 != nil {
		h2.ConnectionKeepalive = &corepb.KeepaliveSettings{Interval: duration(s.PingEach), Timeout: duration(s.PingReply)}
	}
	if s.UseClientProtocol {
		b.useClientProtocol()
	}
}

// thresholds returns the circuit breakers. Envoy's own default of 3 retries is too few while pods come and go, so what
// is not set is unlimited.
func thresholds(s *value.ConnectionPool) *clusterpb.CircuitBreakers {
	limit := func(n uint32) *wrapperspb.UInt32Value {
		if n > 0 {
			return wrapperspb.UInt32(n)
		}
		return wrapperspb.UInt32(math.MaxUint32)
	}
	return &clusterpb.CircuitBreakers{Thresholds: []*clusterpb.CircuitBreakers_Thresholds{{
		MaxConnections:     limit(s.MaxConnections),
		MaxPendingRequests: limit(s.MaxPendingRequests),
		MaxRequests:        limit(s.MaxRequests),
		MaxRetries:         limit(s.MaxRetries),
	}}}
}

// retryBudget limits retries to a part of what is under way, or is nil.
func retryBudget(r *value.RetryBudget) *clusterpb.CircuitBreakers_Thresholds_RetryBudget {
	if r == nil {
		return nil
	}
	return &clusterpb.CircuitBreakers_Thresholds_RetryBudget{
		BudgetPercent: &typepb.Percent{Value: r.Percent}, MinRetryConcurrency: wrapperspb.UInt32(r.Min),
		BudgetInterval: duration(r.Interval)}
}

// connections sets how long and for how much a connection is used.
func (b *clusterBuilder) connections(s *value.ConnectionPool) {
	idle := s.HTTPIdle
	if !idle.Set {
		idle = s.TCPIdle
	}
	if !idle.Set && !s.MaxDuration.Set && s.MaxRequestsPerConnection == 0 && s.MaxConcurrentStreams == 0 {
		return
	}
	common := &corepb.HttpProtocolOptions{IdleTimeout: duration(idle), MaxConnectionDuration: duration(s.MaxDuration)}
	if n := s.MaxRequestsPerConnection; n > 0 {
		common.MaxRequestsPerConnection = wrapperspb.UInt32(n)
	}
	b.options().CommonHttpProtocolOptions = common
	if h2, n := b.http2(), s.MaxConcurrentStreams; h2 != nil && n > 0 {
		h2.MaxConcurrentStreams = wrapperspb.UInt32(n)
	}
}

// keepalive lays k over what was set before. One without any number turns keepalive on with the system's own values.
func (b *clusterBuilder) keepalive(k value.Keepalive) {
	if !k.Set {
		return
	}
	if b.c.UpstreamConnectionOptions == nil {
		b.c.UpstreamConnectionOptions = &clusterpb.UpstreamConnectionOptions{TcpKeepalive: &corepb.TcpKeepalive{}}
	}
	out := b.c.UpstreamConnectionOptions.TcpKeepalive
	if k.Probes > 0 {
		out.KeepaliveProbes = wrapperspb.UInt32(k.Probes)
	}
	set := func(to **wrapperspb.UInt32Value, d value.Duration) {
		if d.Set {
			*to = wrapperspb.UInt32(uint32(d.Seconds))
		}
	}
	set(&out.KeepaliveTime, k.Time)
	set(&out.KeepaliveInterval, k.Interval)
}
