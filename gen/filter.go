package gen

import (
	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Filters are generated from three lists, one for each level at which Envoy has them:
//
//	httpFilterList      in every HTTP connection manager: of sidecars (outbound and inbound), of gateways, of gRPC
//	                    clients and servers
//	networkFilterList   in every filter chain of a listener
//	upstreamFilterList  in every cluster
//
// A list is in the order in which traffic passes. To add a filter, add a row at its place in a list, and to the Key of
// the list what the row reads. Filters that belong to one workload (authorization, JWT, telemetry, WebAssembly) are
// rows like all others: httpFilterList and networkFilterList mark where Envoy must have them. Patches of users
// (EnvoyFilter) to filters apply to what generate returns, for they may name any filter, in whatever list it stands.

// filterRow is one filter of a list.
type filterRow[K any] struct {
	name string
	// needs are the extensions that the proxy must have been built with; 0 for what every build of Envoy has.
	needs value.Filters
	// applies reports whether the filter is wanted; nil: always.
	applies func(K) bool
	config  func(K) *anypb.Any
}

// filter is a filter of any level.
type filter struct {
	name   string
	config *anypb.Any
}

// generate makes those filters of a list that are wanted and that a proxy built with the extensions has knows. No other
// code looks at extensions to decide about a filter: Envoy refuses everything that holds a filter that it lacks.
func generate[K any](list []filterRow[K], has value.Filters, k K) (out []filter) {
	for _, row := range list {
		if has.Has(row.needs) && (row.applies == nil || row.applies(k)) {
			out = append(out, filter{row.name, row.config(k)})
		}
	}
	return out
}

// needs returns the extensions that any filter of a list needs.
func needs[K any](list []filterRow[K]) (out value.Filters) {
	for _, row := range list {
		out |= row.needs
	}
	return out
}

// HTTPFilters returns the filters of an HTTP connection manager.
func HTTPFilters(k HTTPConnectionManagerKey) (out []*hcmpb.HttpFilter) {
	for _, f := range generate(httpFilterList(), k.Filters, k) {
		out = append(out, &hcmpb.HttpFilter{Name: f.name, ConfigType: &hcmpb.HttpFilter_TypedConfig{TypedConfig: f.config}})
	}
	return out
}

// networkFilters returns the filters of a filter chain.
func networkFilters(c filterChain) (out []*listenerpb.Filter) {
	for _, f := range generate(networkFilterList(), c.filters, c) {
		out = append(out, packFilter(f.name, f.config))
	}
	return out
}

// upstreamFilters returns the filters of a cluster.
func upstreamFilters(has value.Filters) (out []*clusterpb.Filter) {
	for _, f := range generate(upstreamFilterList(), has, struct{}{}) {
		out = append(out, &clusterpb.Filter{Name: f.name, TypedConfig: f.config})
	}
	return out
}

// TCPExtensions returns the extensions that chains of bytes depend on. Keys of such chains hold no others, so that
// proxies that differ in others share them.
func TCPExtensions() value.Filters { return needs(networkFilterList()) }

// ClusterExtensions returns the extensions that clusters depend on.
func ClusterExtensions() value.Filters { return needs(upstreamFilterList()) }

func packFilter(name string, config *anypb.Any) *listenerpb.Filter {
	return &listenerpb.Filter{Name: name, ConfigType: &listenerpb.Filter_TypedConfig{TypedConfig: config}}
}
