package bootstrap

import (
	"strconv"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	gzipv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/gzip/compressor/v3"
	compressorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/compressor/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
)

// addListeners adds the readiness listener and the metrics listener. Each serves one path and answers nothing else.
func (in Input) addListeners(to *bootstrapv3.Bootstrap_StaticResources) {
	compress := in.Pod.Config.GetStatsCompression() == nil || in.Pod.Config.GetStatsCompression().GetValue()
	if v, err := strconv.ParseBool(in.Pod.Annotations["sidecar.istio.io/statsCompression"]); err == nil {
		compress = v
	}
	to.Listeners = []*listenerv3.Listener{
		in.listener(page{port: in.Pod.PrometheusPort(), name: "stats", path: "/stats/prometheus", cluster: clusterMetrics,
			compress: compress}),
	}
	if in.Pod.Config.StatusPort != 0 { // no status port: nobody asks the agent for readiness either
		to.Listeners = append(to.Listeners,
			in.listener(page{port: in.Pod.ReadyPort(), name: "agent", path: "/healthz/ready", cluster: clusterAgent}))
	}
}

// page is a listener that serves one path on a port and forwards it to a cluster.
type page struct {
	port                uint32
	name, path, cluster string
	compress            bool
}

func (in Input) listener(p page) *listenerv3.Listener {
	filters := []*hcmv3.HttpFilter{{Name: "envoy.filters.http.router",
		ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: packed(&routerv3.Router{})}}}
	if p.compress {
		filters = append([]*hcmv3.HttpFilter{compressor()}, filters...)
	}
	manager := &hcmv3.HttpConnectionManager{
		StatPrefix: p.name, HttpFilters: filters,
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			VirtualHosts: []*routev3.VirtualHost{{Name: "backend", Domains: []string{"*"}, Routes: []*routev3.Route{{
				Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Path{Path: p.path}},
				Action: &routev3.Route_Route{Route: &routev3.RouteAction{
					ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: p.cluster}}},
			}}}}}},
	}
	return &listenerv3.Listener{
		Name: p.name + "_" + strconv.Itoa(int(p.port)), Address: in.wildcard(p.port),
		// Readiness must be answered even when Envoy has reached its limit of connections.
		IgnoreGlobalConnLimit: true, BypassOverloadManager: true,
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name:       "envoy.filters.network.http_connection_manager",
			ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed(manager)}}}}},
	}
}

// compressor returns a filter that compresses answers with gzip for clients that accept it.
func compressor() *hcmv3.HttpFilter {
	return &hcmv3.HttpFilter{Name: "envoy.filters.http.compressor", ConfigType: &hcmv3.HttpFilter_TypedConfig{
		TypedConfig: packed(&compressorv3.Compressor{CompressorLibrary: &corev3.TypedExtensionConfig{
			Name: "gzip", TypedConfig: packed(&gzipv3.Gzip{})}})}}
}
