package bootstrap

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	tracev3 "github.com/envoyproxy/go-control-plane/envoy/config/trace/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// addTracing adds the tracer that ProxyConfig names, and the cluster of its collector.
func (in Input) addTracing(to *bootstrapv3.Bootstrap) error {
	tracing := in.Pod.Config.GetTracing()
	//lint:ignore SA1019 meshes still set it
	zipkin := cmp.Or(tracing.GetZipkin().GetAddress(), in.Pod.Config.GetZipkinAddress())
	switch {
	case zipkin != "":
		return in.addTracer(to, tracer{"envoy.tracers.zipkin", "zipkin", zipkin, &tracev3.ZipkinConfig{
			CollectorCluster: "zipkin", CollectorEndpoint: "/api/v2/spans", TraceId_128Bit: true,
			CollectorEndpointVersion: tracev3.ZipkinConfig_HTTP_JSON, SharedSpanContext: wrapperspb.Bool(false)}})
	case tracing.GetDatadog().GetAddress() != "":
		return in.addTracer(to, tracer{"envoy.tracers.datadog", "datadog_agent", tracing.GetDatadog().GetAddress(),
			&tracev3.DatadogConfig{CollectorCluster: "datadog_agent", ServiceName: in.Pod.Service()}})
	}
	return nil
}

// tracer is a tracing provider and the address of its collector.
type tracer struct {
	name, cluster, address string
	config                 proto.Message
}

func (in Input) addTracer(to *bootstrapv3.Bootstrap, t tracer) error {
	// The address of a collector on the pod's node contains a variable that only the pod can resolve.
	at := strings.ReplaceAll(t.address, "$(HOST_IP)", bracketed(in.Pod.Env.Text("HOST_IP", "")))
	host, port, err := net.SplitHostPort(at)
	n, perr := strconv.ParseUint(port, 10, 16)
	if err != nil || perr != nil || host == "" {
		return fmt.Errorf("ProxyConfig: tracing: want host:port, got %q", t.address)
	}
	kind := clusterv3.Cluster_STRICT_DNS
	if _, err := netip.ParseAddr(host); err == nil {
		kind = clusterv3.Cluster_STATIC
	}
	c := cluster(t.cluster, address(host, uint32(n)), kind)
	c.DnsLookupFamily = clusterv3.Cluster_V4_ONLY
	if in.Pod.IPv6Only() {
		c.DnsLookupFamily = clusterv3.Cluster_V6_ONLY
	} else if in.Pod.DualStack() {
		c.DnsLookupFamily = clusterv3.Cluster_ALL
	}
	to.StaticResources.Clusters = append(to.StaticResources.Clusters, c)
	//lint:ignore SA1019 listeners that control planes send rely on it
	to.Tracing = &tracev3.Tracing{Http: &tracev3.Tracing_Http{Name: t.name,
		ConfigType: &tracev3.Tracing_Http_TypedConfig{TypedConfig: packed(t.config)}}}
	return nil
}

func bracketed(ip string) string {
	if strings.Contains(ip, ":") {
		return "[" + ip + "]"
	}
	return ip
}
