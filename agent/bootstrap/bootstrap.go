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

// Names of the clusters that every Envoy starts with.
const (
	clusterXDS     = "xds-grpc"
	clusterSDS     = "sds-grpc"
	clusterAgent   = "agent"
	clusterMetrics = "prometheus_stats"
)

// Input is what a bootstrap is made from.
type Input struct {
	Pod *pod.Pod
	// XDS and SDS are the paths of the agent's sockets.
	XDS, SDS string
	// SotW has Envoy speak the State-of-the-World variant of the protocol.
	SotW bool
	// OutlierLog is the file for events of outlier detection; none when empty.
	OutlierLog string
}

// New makes a bootstrap.
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

// dynamic has everything else come over one stream from the agent, and waits for it as long as it takes.
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

// runtime are Envoy's runtime keys: those that control planes of Istio's kind count on, then those of ProxyConfig.
func (in Input) runtime() (*bootstrapv3.LayeredRuntime, error) {
	values := map[string]any{
		// Control planes check regular expressions against this size.
		"re2.max_program_size.error_level": "32768",
		// A fragment in a path is for the route to judge.
		"envoy.reloadable_features.http_reject_path_with_fragment": false,
	}
	for name, value := range in.Pod.Config.RuntimeValues {
		if value == "" { // takes a key away
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

// overload says that connections are not limited here: what limits them is the pod's memory and the mesh's settings.
func overload() *overloadv3.OverloadManager {
	const most = 1<<31 - 1
	return &overloadv3.OverloadManager{ResourceMonitors: []*overloadv3.ResourceMonitor{{
		Name: "envoy.resource_monitors.global_downstream_max_connections",
		ConfigType: &overloadv3.ResourceMonitor_TypedConfig{TypedConfig: packed(
			&connectionsv3.DownstreamConnectionsConfig{MaxActiveDownstreamConnections: most})},
	}}}
}

// clusters are the ways to the agent and to Envoy's own metrics.
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

// packed puts a message into an Any. Its bytes are the same each time.
func packed(m proto.Message) *anypb.Any {
	a := &anypb.Any{}
	if err := anypb.MarshalFrom(a, m, proto.MarshalOptions{Deterministic: true}); err != nil {
		panic(err) // a message of this package that cannot be encoded
	}
	return a
}
