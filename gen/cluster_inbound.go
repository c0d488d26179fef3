package gen

import (
	"cmp"
	"strconv"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// InboundClusterKey is what the cluster of one of the workload's own ports is made from, but for its
// InboundClusterNames.
type InboundClusterKey struct {
	Mesh     *value.ConnectionSettings
	Protocol value.Protocol
	// Rule is the DestinationRule of the service, for its port Port; nil if it says nothing of connections.
	Rule *value.DestinationRule
	Port int
	// Pool are the connection limits of a Sidecar object, which count in place of the Rule's, and Sidecar is that
	// object; nil and zero if it sets none.
	Pool    *value.ConnectionPool
	Sidecar value.Meta
	// IPv4: the proxy has an IPv4 address.
	IPv4 bool
	// Leads says where the cluster leads.
	Leads InboundEndpoint
}

// InboundEndpoint says where an inbound cluster leads.
type InboundEndpoint uint8

// The places to which an inbound cluster may lead.
const (
	// ToDestination is the address at which the connection arrived.
	ToDestination InboundEndpoint = iota
	// ToLoopback is the application at the loopback interface.
	ToLoopback
	// ToAddress is another address of the workload, or a Unix socket. Interception would send the connection back to
	// the proxy if it did not come from an address that is left alone.
	ToAddress
)

// InboundClusterNames are what such a cluster is called. All else in it is the same for every port and workload of an
// equal kind.
type InboundClusterNames struct {
	// Services are all at this target port with the same service port, for telemetry; the first decides.
	Services []*value.Service
	// Rule is that of the Key, and IPv4 too.
	Rule *value.DestinationRule
	IPv4 bool
	// Target is the workload's port.
	Target int32
	// Stat is the name of statistics by the mesh's pattern; empty where it has none.
	Stat string
	// Default is the endpoint of a port that a Sidecar declares; nil: the loopback interface at Target.
	Default *IngressEndpoint
}

// IngressEndpoint is where the application serves a port that a Sidecar declares.
type IngressEndpoint struct {
	// Host is an IP, or a "unix://" path with port 0.
	Host string
	Port uint32
}

// The texts of InboundClusterNames.
const (
	ClusterTextName = iota
	ClusterTextStat
	ClusterTextMetadata // encoded
	ClusterTextAddress  // the encoded address of the application
)

// Texts returns the texts that the names make.
func (n InboundClusterNames) Texts() []string {
	return []string{
		ClusterTextName: InboundClusterName(int(n.Target)), ClusterTextStat: n.stat(),
		ClusterTextMetadata: string(MarshalSorted(n.metadata())), ClusterTextAddress: string(Marshal(n.address())),
	}
}

func (n InboundClusterNames) stat() string {
	return cmp.Or(n.Stat, InboundClusterName(int(n.Target))+";")
}

// InboundClusterName returns the name of the cluster of a workload's port.
func InboundClusterName(target int) string { return "inbound|" + strconv.Itoa(target) + "||" }

// InboundClusterStat returns the name that the mesh's pattern gives the statistics of a cluster; empty where it has
// none.
func InboundClusterStat(m *value.Mesh, svc *value.Service, port *value.Port, target int) string {
	if m.InboundStat != "" {
		return statName(m.InboundStat, statOf{m.DomainSuffix, svc, port, "", target})
	}
	return ""
}

// cleanupNever is the longest interval that Envoy can hold: 292 years.
const cleanupNever = 9223372035

// InboundCluster leads from the proxy to its own application.
func InboundCluster(k InboundClusterKey, n InboundClusterNames) *clusterpb.Cluster {
	b := newCluster(InboundClusterName(int(n.Target)), clusterpb.Cluster_ORIGINAL_DST)
	if k.Leads == ToDestination {
		b.c.CleanupInterval = &durationpb.Duration{Seconds: cleanupNever}
		b.c.LbPolicy = clusterpb.Cluster_CLUSTER_PROVIDED
	} else {
		b.c.ClusterDiscoveryType = &clusterpb.Cluster_Type{Type: clusterpb.Cluster_STATIC}
		b.c.LoadAssignment = &endpointpb.ClusterLoadAssignment{ClusterName: b.c.Name,
			Endpoints: []*endpointpb.LocalityLbEndpoints{{
				LbEndpoints: []*endpointpb.LbEndpoint{{
					HostIdentifier: &endpointpb.LbEndpoint_Endpoint{Endpoint: &endpointpb.Endpoint{Address: n.address()}}}}}}}
	}
	if k.Leads != ToLoopback {
		b.c.UpstreamBindConfig = inboundBind(k.IPv4)
	}
	b.protocol(k.Protocol, value.SidecarProxy)
	b.c.Metadata = n.metadata()
	b.c.AltStatName = n.stat()
	// The limits of the service are the server's too: else Envoy's defaults would refuse what clients may send.
	own, _ := ownPolicy(k.Rule, k.Port)
	if k.Pool != nil {
		own.Pool = k.Pool
	}
	b.pool(k.Mesh, own)
	return b.done()
}

func (n InboundClusterNames) metadata() *corepb.Metadata {
	var services []*structpb.Value
	for _, s := range n.Services {
		services = append(services, serviceValue(s.Host, s.Name, s.Namespace))
	}
	fields := map[string]*structpb.Value{"services": listValue(services...)}
	if n.Rule != nil {
		fields["config"] = configValue(n.Rule)
	}
	return istioMetadata(fields)
}

// address returns the application's.
func (n InboundClusterNames) address() *corepb.Address {
	if n.Default != nil {
		return endpointAddress(n.Default.Host, n.Default.Port)
	}
	return endpointAddress(Loopback(n.IPv4), uint32(n.Target))
}

// Loopback returns the address of the loopback interface for a proxy with or without an IPv4 address.
func Loopback(ipv4 bool) string {
	if ipv4 {
		return "127.0.0.1"
	}
	return "::1"
}

// InboundLeads returns where the clusters of the ports that services declare lead.
func InboundLeads(m *value.Mesh) InboundEndpoint {
	if m.Loopback {
		return ToLoopback
	}
	return ToDestination
}
