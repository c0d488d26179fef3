package gen

//lint:file-ignore SA1019 istiod sends these deprecated fields, and older proxies know no others

import (
	"strconv"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	carespb "github.com/envoyproxy/go-control-plane/envoy/extensions/network/dns_resolver/cares/v3"
	httppb "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// ClusterKey is the whole input of an outbound cluster: one port of a service, or one subset of it.
type ClusterKey struct {
	Mesh    *value.ClusterSettings
	Service *value.Service
	// Port is one of the service's, not UDP.
	Port *value.Port
	// Projection is what is known of the service's endpoints; nil if there are none.
	Projection *value.Projection
	// Peers are the policies of the service's namespace, where some of its ports may take plain text alone; nil
	// otherwise.
	Peers *value.PeerPolicies
	// Rule is the DestinationRule in force; nil if there is none.
	Rule *value.DestinationRule
	// Subset is one of the rule's; empty for the cluster of all endpoints.
	Subset string
	Client ClusterClient
	// Order ranks the endpoints that the cluster carries itself; zero for all other clusters.
	Order Ordering
}

// ClusterClient are the facts about a proxy that its outbound clusters depend on.
type ClusterClient struct {
	Type value.NodeType
	// Filters are those of its ClusterExtensions that it has.
	Filters value.Filters
	// IPv6Only: it has no IPv4 address. Set only for clusters that the proxy resolves itself.
	IPv6Only bool
}

// ClusterName returns the name of an outbound cluster, and of the endpoint assignment that it asks for.
func ClusterName(port int, subset, host string) string {
	return "outbound|" + strconv.Itoa(port) + "|" + subset + "|" + host
}

// clusterSNI returns the server name that mutual TLS to a cluster asks for: its name in the characters that a server
// name may have.
func clusterSNI(port int, subset, host string) string {
	return "outbound_." + strconv.Itoa(port) + "_." + subset + "_." + host
}

// Cluster returns an outbound cluster. There must be one: see HasCluster.
func Cluster(k ClusterKey) *clusterpb.Cluster {
	policy := PolicyOf(k.Mesh, k.Rule, k.Subset, k.Port.Number)
	if k.Client.Type == value.Proxyless {
		return proxylessCluster(k, policy)
	}
	b := newCluster(ClusterName(k.Port.Number, k.Subset, k.Service.Host), k.createdAs())
	b.resolve(k)
	b.protocol(k.Port.Protocol, k.Client.Type)
	b.c.Metadata = outboundMetadata(k, policy)
	if pattern := k.Mesh.Stat; pattern != "" {
		b.c.AltStatName = statName(pattern, statOf{k.Mesh.DomainSuffix, k.Service, k.Port, k.Subset, 0})
	}
	if KeepsDraining(k.Service) && k.Subset == "" {
		b.c.CommonLbConfig.OverrideHostStatus = &corepb.HealthStatusSet{Statuses: []corepb.HealthStatus{
			corepb.HealthStatus_HEALTHY, corepb.HealthStatus_DRAINING, corepb.HealthStatus_UNKNOWN,
			corepb.HealthStatus_DEGRADED}}
	}
	b.upgrade(k, policy.Pool)
	b.pool(k.Mesh.Connections, policy)
	b.outlier(policy.Outlier)
	b.balance(k, policy)
	b.security(k, policy)
	if b.c.GetType() == clusterpb.Cluster_EDS {
		b.c.EdsClusterConfig = edsConfig(b.c.Name)
	}
	b.c.Filters = upstreamFilters(k.Client.Filters)
	return b.done()
}

// HasCluster reports whether there is a cluster for k: one that the proxy resolves by DNS and that has no name to
// resolve is left out.
func HasCluster(k ClusterKey) bool {
	if k.Service.Resolution == value.Alias {
		return false
	}
	if k.Client.Type == value.Proxyless {
		return true
	}
	if all := (ClusterKey{Service: k.Service, Client: k.Client}); !isDNS(all.createdAs()) {
		return true
	}
	inline := func(subset value.Labels) bool { return len(inlineEndpoints(k, subset)) > 0 }
	return inline(nil) && (!isDNS(k.createdAs()) || inline(k.Rule.SubsetLabels(k.Subset)))
}

// ClusterAsks reports whether the cluster gets its endpoints from an endpoint assignment of its name.
func ClusterAsks(k ClusterKey) bool {
	if k.Client.Type == value.Proxyless {
		return proxylessName(k) == nil
	}
	return k.createdAs() == clusterpb.Cluster_EDS &&
		!passthrough(PolicyOf(k.Mesh, k.Rule, k.Subset, k.Port.Number).Balancer)
}

// createdAs returns the discovery type before the traffic policy of the cluster itself is looked at. A subset starts
// from what the rule's policy made of the whole.
func (k ClusterKey) createdAs() clusterpb.Cluster_DiscoveryType {
	if k.Subset != "" {
		whole := PolicyOf(k.Mesh, k.Rule, "", k.Port.Number)
		if passthrough(whole.Balancer) || passthrough(k.Rule.SubsetPolicy(k.Subset).Own().Balancer) {
			return clusterpb.Cluster_ORIGINAL_DST
		}
	}
	switch k.Service.Resolution {
	case value.DNSLB:
		return clusterpb.Cluster_STRICT_DNS
	case value.DNSRoundRobin:
		return clusterpb.Cluster_LOGICAL_DNS
	case value.Passthrough:
		if k.Client.Type != value.Router { // a router's connections have no original destination
			return clusterpb.Cluster_ORIGINAL_DST
		}
	}
	return clusterpb.Cluster_EDS
}

func isDNS(t clusterpb.Cluster_DiscoveryType) bool {
	return t == clusterpb.Cluster_STRICT_DNS || t == clusterpb.Cluster_LOGICAL_DNS
}

func passthrough(lb *value.LoadBalancer) bool { return lb != nil && lb.Algorithm == value.PassThrough }

// clusterBuilder collects a cluster; its HTTP options are packed last, for several settings add to them.
type clusterBuilder struct {
	c    *clusterpb.Cluster
	http *httppb.HttpProtocolOptions
}

func newCluster(name string, t clusterpb.Cluster_DiscoveryType) *clusterBuilder {
	return &clusterBuilder{c: &clusterpb.Cluster{
		Name: name, AltStatName: name + ";", ClusterDiscoveryType: &clusterpb.Cluster_Type{Type: t},
		CommonLbConfig: &clusterpb.Cluster_CommonLbConfig{},
	}}
}

// resolve says how the cluster finds its endpoints, but for those that ask for an assignment.
func (b *clusterBuilder) resolve(k ClusterKey) {
	c := b.c
	switch t := c.GetType(); {
	case isDNS(t):
		c.DnsLookupFamily = clusterpb.Cluster_V4_ONLY
		if k.Client.IPv6Only {
			c.DnsLookupFamily = clusterpb.Cluster_V6_ONLY
		}
		c.TypedDnsResolverConfig = &corepb.TypedExtensionConfig{
			Name:        "envoy.network.dns_resolver.cares",
			TypedConfig: anyOf(&carespb.CaresDnsResolverConfig{UdpMaxQueries: wrapperspb.UInt32(100)}),
		}
		c.DnsJitter = &durationpb.Duration{Nanos: 100_000_000}
		c.DnsRefreshRate = duration(k.Mesh.DNSRefresh)
		c.RespectDnsTtl = true
		c.LoadAssignment = &endpointpb.ClusterLoadAssignment{ClusterName: c.Name, Endpoints: inlineAssignment(k)}
	case t == clusterpb.Cluster_ORIGINAL_DST:
		if p := k.Port; k.Service.Registry == value.RegistryExternal && p.TargetPort != 0 && p.TargetPort != p.Number {
			c.LbConfig = &clusterpb.Cluster_OriginalDstLbConfig_{OriginalDstLbConfig: &clusterpb.Cluster_OriginalDstLbConfig{
				UpstreamPortOverride: wrapperspb.UInt32(uint32(p.TargetPort))}}
		}
	}
}

// edsConfig asks for the endpoint assignment of that name on the stream that the cluster came by.
func edsConfig(name string) *clusterpb.Cluster_EdsClusterConfig {
	return &clusterpb.Cluster_EdsClusterConfig{
		ServiceName: name,
		EdsConfig: &corepb.ConfigSource{
			ConfigSourceSpecifier: &corepb.ConfigSource_Ads{Ads: &corepb.AggregatedConfigSource{}},
			InitialFetchTimeout:   &durationpb.Duration{},
			ResourceApiVersion:    corepb.ApiVersion_V3,
		},
	}
}

const httpOptionsName = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// done returns the cluster, with its HTTP options packed.
func (b *clusterBuilder) done() *clusterpb.Cluster {
	if b.http == nil {
		return b.c
	}
	if b.http.UpstreamProtocolOptions == nil {
		b.http.UpstreamProtocolOptions = &httppb.HttpProtocolOptions_ExplicitHttpConfig_{
			ExplicitHttpConfig: &httppb.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &httppb.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{
					HttpProtocolOptions: &corepb.Http1ProtocolOptions{}}}}
	}
	b.c.TypedExtensionProtocolOptions = map[string]*anypb.Any{httpOptionsName: anyOf(b.http)}
	return b.c
}
