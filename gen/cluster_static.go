package gen

import (
	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	httppb "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// StaticClusterKey is the whole input of a cluster that exists whatever services there are.
type StaticClusterKey struct {
	Mesh *value.ConnectionSettings
	// Filters are those of its ClusterExtensions that the proxy has; none for the inbound cluster.
	Filters value.Filters
	// IPv4 and IPv6 are the families of the proxy's addresses, for the inbound one.
	IPv4, IPv6 bool
	// DynamicDNS is how the proxy resolves names, Outbound and Defaults say which TLS it begins; set only of
	// AllowAnyDynamicDNSCluster.
	DynamicDNS DynamicDNS
	Outbound   *value.OutboundPolicy
	Defaults   *value.TLSSettings
}

// Names of the clusters that exist whatever services there are. Configuration of users refers to them.
const (
	BlackHole          = "BlackHoleCluster"
	PassthroughOut     = "PassthroughCluster"
	PassthroughInbound = "InboundPassthroughCluster"
	DynamicDNSOut      = "AllowAnyDynamicDNSCluster"
)

// BlackHoleCluster has no endpoint: connections to it fail.
func BlackHoleCluster(k StaticClusterKey) *clusterpb.Cluster {
	return &clusterpb.Cluster{
		Name: BlackHole, AltStatName: BlackHole + ";", ConnectTimeout: duration(k.Mesh.ConnectTimeout),
		ClusterDiscoveryType: &clusterpb.Cluster_Type{Type: clusterpb.Cluster_STATIC},
	}
}

// PassthroughCluster forwards connections to where they were going.
func PassthroughCluster(k StaticClusterKey) *clusterpb.Cluster {
	b := &clusterBuilder{c: &clusterpb.Cluster{
		Name: PassthroughOut, AltStatName: PassthroughOut + ";", LbPolicy: clusterpb.Cluster_CLUSTER_PROVIDED,
		ClusterDiscoveryType: &clusterpb.Cluster_Type{Type: clusterpb.Cluster_ORIGINAL_DST},
	}}
	b.http = &httppb.HttpProtocolOptions{
		CommonHttpProtocolOptions: &corepb.HttpProtocolOptions{IdleTimeout: &durationpb.Duration{Seconds: 300}},
		UpstreamProtocolOptions:   downstreamProtocol(),
	}
	b.pool(k.Mesh, value.TrafficPolicy{})
	b.c.Filters = upstreamFilters(k.Filters)
	return b.done()
}

// InboundPassthroughCluster forwards what arrives at the proxy to the application at the port that it was sent to.
func InboundPassthroughCluster(k StaticClusterKey) *clusterpb.Cluster {
	c := PassthroughCluster(StaticClusterKey{Mesh: k.Mesh})
	c.Name = PassthroughInbound
	c.UpstreamBindConfig = inboundBind(k.IPv4)
	if k.IPv4 && k.IPv6 {
		c.UpstreamBindConfig.ExtraSourceAddresses = []*corepb.ExtraSourceAddress{{Address: socketFrom(inboundBindIPv6)}}
	}
	return c
}

// The addresses from which a proxy connects to its own application: interception leaves them alone, so that no
// connection goes in a circle.
const (
	inboundBindIPv4 = "127.0.0.6"
	inboundBindIPv6 = "::6"
)

func inboundBind(ipv4 bool) *corepb.BindConfig {
	if ipv4 {
		return &corepb.BindConfig{SourceAddress: socketFrom(inboundBindIPv4)}
	}
	return &corepb.BindConfig{SourceAddress: socketFrom(inboundBindIPv6)}
}

// socketFrom returns an address with any port.
func socketFrom(address string) *corepb.SocketAddress {
	return &corepb.SocketAddress{Address: address, PortSpecifier: &corepb.SocketAddress_PortValue{PortValue: 0}}
}
