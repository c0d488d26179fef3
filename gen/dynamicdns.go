package gen

import (
	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	dfpclusterpb "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dynamic_forward_proxy/v3"
	dfppb "github.com/envoyproxy/go-control-plane/envoy/extensions/common/dynamic_forward_proxy/v3"
	dfpfilterpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/dynamic_forward_proxy/v3"
	hcmpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	carespb "github.com/envoyproxy/go-control-plane/envoy/extensions/network/dns_resolver/cares/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// The outbound traffic policy ALLOW_ANY_DYNAMIC_DNS lets a sidecar resolve the host of a request itself, where no
// service is meant:
//
//	any HTTP listener          the dynamic_forward_proxy filter resolves the host of requests that are routed to
//	                           AllowAnyDynamicDNSCluster
//	RouteConfiguration         the catch-all virtual host routes to AllowAnyDynamicDNSCluster
//	virtualOutbound            a chain for HTTP, with the same route; other bytes go to PassthroughCluster
//	AllowAnyDynamicDNSCluster  connects to the addresses that the filter found, with TLS if the policy says so

// DynamicDNS says whether a proxy resolves the hosts of requests to unknown services, and how. Comparable; the zero
// value is no.
type DynamicDNS struct {
	Served bool
	// IPv6Only tells that the proxy has no IPv4 address.
	IPv6Only bool
	// Captured tells that the agent beside the proxy resolves names; it knows the mesh's own names too.
	Captured bool
}

// agentDNSPort is the port at which an agent that captures DNS answers queries.
const agentDNSPort = 15053

// cache returns the setting of the cache of resolved names. The filter and the cluster share one cache by its name, and
// Envoy refuses a second setting under the same name for as long as the first is in use: nothing in it may change while
// a proxy runs, so nothing comes from the configuration of the mesh.
func (d DynamicDNS) cache() *dfppb.DnsCacheConfig {
	resolver := &carespb.CaresDnsResolverConfig{UdpMaxQueries: wrapperspb.UInt32(100)}
	loopback := "127.0.0.1"
	family := clusterpb.Cluster_V4_ONLY
	if d.IPv6Only {
		loopback, family = "::1", clusterpb.Cluster_V6_ONLY
	}
	if d.Captured { // the proxy's own queries are not intercepted, so it must be told where the agent is
		resolver.Resolvers = []*corepb.Address{SocketAddress(loopback, agentDNSPort)}
	}
	return &dfppb.DnsCacheConfig{
		Name: "allow_any_dynamic_dns", DnsLookupFamily: family,
		TypedDnsResolverConfig: &corepb.TypedExtensionConfig{Name: "envoy.network.dns_resolver.cares",
			TypedConfig: anyOf(resolver)},
	}
}

// filter returns the configuration of the HTTP filter that resolves hosts.
func (d DynamicDNS) filter() *anypb.Any {
	return anyOf(&dfpfilterpb.FilterConfig{
		ImplementationSpecifier: &dfpfilterpb.FilterConfig_DnsCacheConfig{DnsCacheConfig: d.cache()}})
}

// DynamicDNSCluster returns AllowAnyDynamicDNSCluster: it connects to the address that the name of each request's host
// has.
func DynamicDNSCluster(k StaticClusterKey) *clusterpb.Cluster {
	tls := k.Outbound.TLS
	b := &clusterBuilder{c: &clusterpb.Cluster{Name: DynamicDNSOut, AltStatName: DynamicDNSOut + ";",
		LbPolicy: clusterpb.Cluster_CLUSTER_PROVIDED}}
	b.useClientProtocol()
	b.options().CommonHttpProtocolOptions = &corepb.HttpProtocolOptions{IdleTimeout: &durationpb.Duration{Seconds: 300}}
	b.pool(k.Mesh, value.TrafficPolicy{})
	// The cluster stands for no service and no port: what the context of another cluster would take from them is empty
	// here.
	of := ClusterKey{Mesh: &value.ClusterSettings{TLS: k.Defaults}, Service: &value.Service{External: true},
		Port: &value.Port{}}
	// unless tls says otherwise
	b.options().UpstreamHttpProtocolOptions = &corepb.UpstreamHttpProtocolOptions{AutoSni: true,
		AutoSanValidation: true}
	if ctx := b.tlsContext(of, tls); ctx != nil {
		if tls.SNI != "" {
			b.options().UpstreamHttpProtocolOptions = nil
		}
		if meshTLS(tls) {
			ctx.Sni = tls.SNI
			b.serverName(tls)
		}
		b.c.TransportSocket = transportSocket("envoy.transport_sockets.tls", ctx)
		b.c.Metadata = istioMetadata(map[string]*structpb.Value{"alpn_override": structpb.NewStringValue("false")})
	}
	// Envoy wants the server's name taken from the request and verified, unless it is told that something else is
	// meant.
	o := b.options().GetUpstreamHttpProtocolOptions()
	b.c.ClusterDiscoveryType = &clusterpb.Cluster_ClusterType{ClusterType: &clusterpb.Cluster_CustomClusterType{
		Name: "envoy.clusters.dynamic_forward_proxy",
		TypedConfig: anyOf(&dfpclusterpb.ClusterConfig{
			ClusterImplementationSpecifier: &dfpclusterpb.ClusterConfig_DnsCacheConfig{DnsCacheConfig: k.DynamicDNS.cache()},
			AllowInsecureClusterOptions:    !o.GetAutoSni() || !o.GetAutoSanValidation(),
		}),
	}}
	return b.done()
}

// detectHTTP is how long virtualOutbound waits for a client to show that it speaks HTTP where the mesh sets no limit: a
// server that speaks first must not wait for ever.
const detectHTTP = 1

// addVirtualHTTP lets virtualOutbound route the HTTP requests among what no other listener takes by their host. The
// inspector looks into connections before they are handed over to other listeners, so it stays away from ports of
// services that speak something else.
func addVirtualHTTP(l *listenerpb.Listener, k VirtualHTTPKey) {
	const name = "virtualOutbound-catchall-http"
	m := HTTPConnectionManager(HTTPConnectionManagerKey{
		Mesh: k.Mesh, Class: SidecarOutbound, Filters: k.Filters, HTTP10: k.HTTP10, DynamicDNS: k.DynamicDNS,
		StatPrefix: name,
	})
	routes := RouteConfiguration(RouteConfigurationKey{Name: name})
	routes.VirtualHosts = []*routepb.VirtualHost{
		catchAll(CatchAllKey{CountAttempts: k.CountAttempts, Cluster: DynamicDNSOut})}
	m.RouteSpecifier = &hcmpb.HttpConnectionManager_RouteConfig{RouteConfig: routes}
	last := len(l.FilterChains) - 1
	l.FilterChains = append(l.FilterChains[:last:last], &listenerpb.FilterChain{
		Name:             name,
		FilterChainMatch: &listenerpb.FilterChainMatch{ApplicationProtocols: plaintextHTTP()},
		Filters:          networkFilters(filterChain{filters: k.Filters, http: m}),
	}, l.FilterChains[last])
	l.ListenerFilters = append([]*listenerpb.ListenerFilter{originalDestination()},
		Inspection{On: true, Except: k.Bytes}.inspector(httpInspector)...)
	l.ContinueOnListenerFiltersTimeout = true
	l.ListenerFiltersTimeout = detectionTimeout(k.Detection)
	if l.ListenerFiltersTimeout.AsDuration() == 0 {
		l.ListenerFiltersTimeout = &durationpb.Duration{Seconds: detectHTTP}
	}
}
