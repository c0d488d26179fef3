package inbound

import (
	"slices"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
)

// clusterPlaceholders returns where inbound clusters of a kind differ.
func clusterPlaceholders() []encodecache.Placeholder {
	path := func(numbers ...int) (out []encodecache.Step) {
		for _, n := range numbers {
			out = append(out, encodecache.Step{Field: n})
		}
		return out
	}
	return []encodecache.Placeholder{
		{Path: path(1), Text: gen.ClusterTextName},
		{Path: path(25), Text: gen.ClusterTextMetadata},
		{Path: path(28), Text: gen.ClusterTextStat},
		{Path: path(33, 1), Text: gen.ClusterTextName},             // of its own assignment,
		{Path: path(33, 2, 2, 1, 1), Text: gen.ClusterTextAddress}, // whose one endpoint has an address
	}
}

// chainPlaceholders returns where encoded chains have their names, in the fields of a listener.
func chainPlaceholders() []encodecache.Placeholder {
	const anyURL = "type.googleapis.com/envoy.extensions.filters.network."
	fields := func(numbers ...int) (path []encodecache.Step) {
		for _, n := range numbers {
			path = append(path, encodecache.Step{Field: n})
		}
		return path
	}
	filter := func(typ string, numbers ...int) []encodecache.Step {
		return slices.Concat(fields(3, 3, 4), []encodecache.Step{{Field: 2, Any: anyURL + typ}}, fields(numbers...))
	}
	const hcm, tcp, mongo = "http_connection_manager.v3.HttpConnectionManager", "tcp_proxy.v3.TcpProxy",
		"mongo_proxy.v3.MongoProxy"
	return []encodecache.Placeholder{
		{Path: fields(3, 7), Text: gen.ChainName},
		{Path: fields(3, 1, 8), Text: gen.ChainPort}, // of the match
		{Path: filter(hcm, 2), Text: gen.ChainHTTPStat},
		{Path: filter(hcm, 4, 1), Text: gen.ChainCluster},            // names the route configuration
		{Path: filter(hcm, 4, 2, 1), Text: gen.ChainVirtualHost},     // its virtual host,
		{Path: filter(hcm, 4, 2, 3, 5, 1), Text: gen.ChainOperation}, // whose route has a decorator
		{Path: filter(hcm, 4, 2, 3, 2, 1), Text: gen.ChainCluster},   // and an action
		{Path: filter(tcp, 1), Text: gen.ChainTCPStat},
		{Path: filter(tcp, 2), Text: gen.ChainCluster},
		{Path: filter(mongo, 1), Text: gen.ChainTCPStat},
	}
}
