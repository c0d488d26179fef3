package gen

import (
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	mongopb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/mongo_proxy/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// filterChain is what the network filters of a filter chain are made from, on whatever side of whatever proxy it
// stands.
type filterChain struct {
	// filters are the extensions that the proxy has.
	filters value.Filters
	// meetsPeers tells that the client may be a proxy of the mesh, which says at the beginning of a connection who it is.
	meetsPeers bool
	// access says which connections are taken, in a chain of bytes.
	access AccessKey
	// http serves HTTP; nil in a chain of bytes.
	http *hcmpb.HttpConnectionManager
	// tcp is what a chain of bytes forwards to.
	tcp TCPProxyKey
}

// networkFilterList returns every network filter, in the order in which connections pass. The last one ends the chain.
func networkFilterList() []filterRow[filterChain] {
	bytes := func(c filterChain) bool { return c.http == nil }
	return []filterRow[filterChain]{
		{name: peerMetadataName, needs: value.TCPMetadataExchange,
			applies: func(c filterChain) bool { return c.meetsPeers },
			config:  func(filterChain) *anypb.Any { return tcpPeerMetadata() }},

		// The policies and the telemetry of a workload for chains of bytes stand here; in HTTP chains they are HTTP
		// filters.
		customTCP(),
		askTCP(),
		accessTCP(value.AuditAction),
		accessTCP(value.DenyAction),
		accessTCP(value.AllowAction),

		{name: "envoy.filters.network.mongo_proxy",
			applies: func(c filterChain) bool { return bytes(c) && c.tcp.Protocol == value.Mongo },
			config: func(c filterChain) *anypb.Any {
				return anyOf(&mongopb.MongoProxy{StatPrefix: c.tcp.StatPrefix})
			}},
		{name: "envoy.filters.network.tcp_proxy", applies: bytes,
			config: func(c filterChain) *anypb.Any { return anyOf(tcpProxy(c.tcp)) }},
		{name: "envoy.filters.network.http_connection_manager",
			applies: func(c filterChain) bool { return c.http != nil },
			config:  func(c filterChain) *anypb.Any { return anyOf(c.http) }},
	}
}

// upstreamFilterList returns every filter of clusters.
func upstreamFilterList() []filterRow[struct{}] {
	return []filterRow[struct{}]{
		{name: peerMetadataName, needs: value.TCPMetadataExchange,
			config: func(struct{}) *anypb.Any { return tcpPeerMetadata() }},
	}
}

// tcpTo forwards everything to one cluster, which also names the statistics.
func tcpTo(cluster string) TCPProxyKey {
	return TCPProxyKey{StatPrefix: cluster, Upstreams: Upstreams(cluster)}
}

// bytesTo returns the filters of a chain that forwards everything to one cluster, for clients outside the mesh.
func bytesTo(cluster string) []*listenerpb.Filter {
	return networkFilters(filterChain{tcp: tcpTo(cluster)})
}

const peerMetadataName = "istio.metadata_exchange"

// tcpPeerMetadata tells the proxies at both ends of a TCP connection who the other is.
func tcpPeerMetadata() *anypb.Any {
	return typedStruct("envoy.tcp.metadataexchange.config.MetadataExchange", map[string]any{
		"protocol": "istio-peer-exchange", "enable_discovery": true,
	})
}
