package bootstrap

import (
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	overloadv3 "github.com/envoyproxy/go-control-plane/envoy/config/overload/v3"
	connectionsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/downstream_connections/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotd/pilotd/agent/pod"
)

// Names of the clusters that are in every bootstrap.
const (
	clusterXDS     = "xds-grpc"
	clusterSDS     = "sds-grpc"
	clusterAgent   = "agent"
	clusterMetrics = "prometheus_stats"
)

// Input is everything that a bootstrap is made from.
type Input struct {
	Pod *pod.Pod
	// XDS and SDS are the paths of the agent's sockets.
	XDS, SDS string
	// SotW makes Envoy use the State-of-the-World variant of xDS instead of Delta.
	SotW bool
	// OutlierLog is the file that Envoy logs outlier detection events to. Empty means no log.
	OutlierLog string
}

// New builds a bootstrap.
func New(in Input) (*bootstrapv3.Bootstrap, error) {
	node, err := in.Pod.Node()
	if err != nil {
		return nil, err
	}
	stats, err := statsConfig(in.Pod)
	if err != nil {
		return nil, err
	}
	runtime, err := in.runtime()
	if err != nil {
		return nil, err
	}
	out := &bootstrapv3.Bootstrap{
		Node: node, StatsConfig: stats, LayeredRuntime: runtime, OverloadManager: overload(),
		Admin: &bootstrapv3.Admin{Address: in.loopback(uint32(in.Pod.Config.ProxyAdminPort)),
			ProfilePath: "./var/lib/istio/data/envoy.prof"},
		DynamicResources: in.dynamic(),
		StaticResources:  &bootstrapv3.Bootstrap_StaticResources{Clusters: in.clusters()},
	}
	if in.OutlierLog != "" {
		out.ClusterManager = &bootstrapv3.ClusterManager{
			OutlierDetection: &bootstrapv3.ClusterManager_OutlierDetection{EventLogPath: in.OutlierLog}}
	}
	in.addListeners(out.StaticResources)
	if err := in.addTracing(out); err != nil {
		return nil, err
	}
	return out, out.ValidateAll()
}

// dynamic tells Envoy to get all other resources over one ADS stream from the agent, and to wait for them without a
// time limit.
func (in Input) dynamic() *bootstrapv3.Bootstrap_DynamicResources {
	ads := &corev3.ConfigSource{ResourceApiVersion: corev3.ApiVersion_V3, InitialFetchTimeout: durationpb.New(0),
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}}
	api := corev3.ApiConfigSource_DELTA_GRPC
	if in.SotW {
		api = corev3.ApiConfigSource_GRPC
	}
	return &bootstrapv3.Bootstrap_DynamicResources{LdsConfig: ads, CdsConfig: ads, AdsConfig: &corev3.ApiConfigSource{
		ApiType: api, TransportApiVersion: corev3.ApiVersion_V3, SetNodeOnFirstMessageOnly: true,
		GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{
			EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: clusterXDS}}}},
	}}
}

// runtime returns Envoy's runtime layers: the keys that control planes of Istio's kind rely on, then those of
// ProxyConfig.
func (in Input) runtime() (*bootstrapv3.LayeredRuntime, error) {
	values := map[string]any{
		// Control planes check regular expressions against this program size.
		"re2.max_program_size.error_level": "32768",
		// Routes, not the connection manager, decide about a path with a fragment.
		"envoy.reloadable_features.http_reject_path_with_fragment": false,
	}
	for name, value := range in.Pod.Config.RuntimeValues {
		if value == "" { // an empty value removes the key
			delete(values, name)
			continue
		}
		values[name] = value
	}
	layer, err := structpb.NewStruct(values)
	if err != nil {
		return nil, err
	}
	return &bootstrapv3.LayeredRuntime{Layers: []*bootstrapv3.RuntimeLayer{
		{Name: "global config", LayerSpecifier: &bootstrapv3.RuntimeLayer_StaticLayer{StaticLayer: layer}},
		{Name: "admin", LayerSpecifier: &bootstrapv3.RuntimeLayer_AdminLayer_{
			AdminLayer: &bootstrapv3.RuntimeLayer_AdminLayer{}}},
	}}, nil
}

// overload returns an overload manager without a limit on connections: the pod's memory and the mesh's settings limit
// them.
func overload() *overloadv3.OverloadManager {
	const most = 1<<31 - 1
	return &overloadv3.OverloadManager{ResourceMonitors: []*overloadv3.ResourceMonitor{{
		Name: "envoy.resource_monitors.global_downstream_max_connections",
		ConfigType: &overloadv3.ResourceMonitor_TypedConfig{TypedConfig: packed(
			&connectionsv3.DownstreamConnectionsConfig{MaxActiveDownstreamConnections: most})},
	}}}
}

// clusters returns the clusters of the agent's sockets and of Envoy's own metrics.
func (in Input) clusters() []*clusterv3.Cluster {
	return []*clusterv3.Cluster{
		static(clusterMetrics, in.loopback(uint32(in.Pod.Config.ProxyAdminPort))),
		static(clusterAgent, in.loopback(uint32(in.Pod.Config.StatusPort))),
		overHTTP2(static(clusterSDS, socket(in.SDS))),
		overHTTP2(static(clusterXDS, socket(in.XDS))),
	}
}

func static(name string, at *corev3.Address) *clusterv3.Cluster {
	return cluster(name, at, clusterv3.Cluster_STATIC)
}

const connectTimeout = time.Second

// packed encodes a message as an Any, with the same bytes each time.
func packed(m proto.Message) *anypb.Any {
	a := &anypb.Any{}
	if err := anypb.MarshalFrom(a, m, proto.MarshalOptions{Deterministic: true}); err != nil {
		panic(err) // a message of this package that cannot be encoded
	}
	return a
}
