package gen

import (
	"strconv"
	"strings"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// InboundClusterKey is the whole input of the cluster of one of the workload's own ports.
type InboundClusterKey struct {
	Mesh *value.Mesh
	// Service and Port are those that decide, of several at one target port.
	Service *value.Service
	Port    *value.Port
	// Target is the workload's port.
	Target int
	// Services are all at this target port with the same service port, for telemetry: see JoinServices.
	Services string
	// Rule is the DestinationRule of the service; nil if it says nothing of connections.
	Rule *value.DestinationRule
	// Sidecar is set if it has connection limits of its own.
	Sidecar *value.Sidecar
	// IPv4: the proxy has an IPv4 address.
	IPv4 bool
}

// InboundClusterName is the name of the cluster of a workload's port.
func InboundClusterName(target int) string { return "inbound|" + strconv.Itoa(target) + "||" }

// JoinServices is a comparable list of services.
func JoinServices(services []*value.Service) string {
	var out []string
	for _, s := range services {
		out = append(out, s.Host+"\n"+s.Name+"\n"+s.Namespace)
	}
	return strings.Join(out, "\n")
}

// cleanupNever is the longest interval that Envoy can hold: 292 years.
const cleanupNever = 9223372035

// InboundCluster leads from the proxy to its own application.
func InboundCluster(k InboundClusterKey) *clusterpb.Cluster {
	local := k.Mesh.Config.GetInboundTrafficPolicy().GetMode() == meshconfig.MeshConfig_InboundTrafficPolicy_LOCALHOST
	b := newCluster(InboundClusterName(k.Target), clusterpb.Cluster_ORIGINAL_DST)
	if local {
		b.c.ClusterDiscoveryType = &clusterpb.Cluster_Type{Type: clusterpb.Cluster_STATIC}
		b.c.LoadAssignment = k.localhost()
	} else {
		b.c.CleanupInterval = &durationpb.Duration{Seconds: cleanupNever}
		b.c.LbPolicy = clusterpb.Cluster_CLUSTER_PROVIDED
		b.c.UpstreamBindConfig = inboundBind(k.IPv4)
	}
	b.protocol(k.Port, value.SidecarProxy)
	b.c.Metadata = k.metadata()
	if pattern := k.Mesh.Config.GetInboundClusterStatName(); pattern != "" {
		b.c.AltStatName = statName(pattern, statOf{k.Mesh, k.Service, k.Port, "", k.Target})
	}
	// The limits of the service are the server's too: else Envoy's defaults would refuse what clients may send.
	own, _ := ownPolicy(k.Rule, k.Port.Number)
	if k.Sidecar != nil {
		own.Pool = k.Sidecar.Spec.GetInboundConnectionPool()
	}
	b.pool(k.Mesh, own)
	return b.done()
}

func (k InboundClusterKey) metadata() *corepb.Metadata {
	var services []*structpb.Value
	for list := strings.Split(k.Services, "\n"); len(list) >= 3; list = list[3:] {
		services = append(services, serviceValue(list[0], list[1], list[2]))
	}
	fields := map[string]*structpb.Value{"services": listValue(services...)}
	if k.Rule != nil {
		fields["config"] = configValue(k.Rule)
	}
	return istioMetadata(fields)
}

// localhost is the application's loopback address.
func (k InboundClusterKey) localhost() *endpointpb.ClusterLoadAssignment {
	address := "127.0.0.1"
	if !k.IPv4 {
		address = "::1"
	}
	return &endpointpb.ClusterLoadAssignment{ClusterName: InboundClusterName(k.Target), Endpoints: []*endpointpb.LocalityLbEndpoints{{
		LbEndpoints: []*endpointpb.LbEndpoint{{HostIdentifier: &endpointpb.LbEndpoint_Endpoint{
			Endpoint: &endpointpb.Endpoint{Address: endpointAddress(address, uint32(k.Target))}}}}}}}
}
