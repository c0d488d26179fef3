package bootstrap

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// httpOptions is the key under which a cluster has its HTTP protocol options.
const httpOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// cluster returns a cluster with a single address.
func cluster(name string, at *corev3.Address, kind clusterv3.Cluster_DiscoveryType) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: name, ConnectTimeout: durationpb.New(connectTimeout),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: kind},
		LoadAssignment: &endpointv3.ClusterLoadAssignment{ClusterName: name,
			Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: at}}}}}}},
	}
}

func overHTTP2(c *clusterv3.Cluster) *clusterv3.Cluster {
	c.TypedExtensionProtocolOptions = map[string]*anypb.Any{httpOptions: packed(&httpv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{
			ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
					Http2ProtocolOptions: &corev3.Http2ProtocolOptions{}}}}})}
	return c
}

func socket(path string) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: path}}}
}

func address(host string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port}}}}
}

// loopback returns a port on the loopback address, in the address family of the pod.
func (in Input) loopback(port uint32) *corev3.Address {
	if in.Pod.IPv6Only() {
		return address("::1", port)
	}
	return address("127.0.0.1", port)
}

// wildcard returns a port on all addresses of the pod.
func (in Input) wildcard(port uint32) *corev3.Address {
	if !in.Pod.IPv6Only() && !in.Pod.DualStack() {
		return address("0.0.0.0", port)
	}
	a := address("::", port)
	a.GetSocketAddress().Ipv4Compat = true
	return a
}
