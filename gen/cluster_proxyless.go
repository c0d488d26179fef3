package gen

//lint:file-ignore SA1019 istiod sends these deprecated fields, and older proxies know no others

import (
	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlspb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// proxylessCluster returns an outbound cluster for a gRPC client without a proxy: nothing but what grpc's own xDS
// client understands, which refuses a cluster with a policy that it does not know.
func proxylessCluster(k ClusterKey, p value.TrafficPolicy) *clusterpb.Cluster {
	b := &clusterBuilder{c: &clusterpb.Cluster{
		Name:                 ClusterName(k.Port.Number, k.Subset, k.Service.Host),
		ClusterDiscoveryType: &clusterpb.Cluster_Type{Type: clusterpb.Cluster_EDS},
	}}
	if e := proxylessName(k); e != nil {
		b.c.ClusterDiscoveryType = &clusterpb.Cluster_Type{Type: clusterpb.Cluster_LOGICAL_DNS}
		b.c.LoadAssignment = &endpointpb.ClusterLoadAssignment{ClusterName: b.c.Name,
			Endpoints: []*endpointpb.LocalityLbEndpoints{{
				LbEndpoints: []*endpointpb.LbEndpoint{LbEndpoint(*e)}}}}
	} else {
		b.c.EdsClusterConfig = edsConfig(b.c.Name)
	}
	if lb := p.Balancer; lb != nil && lb.Hash != nil && !lb.Hash.Maglev {
		b.hash(lb.Hash)
	}
	if p.Pool != nil && p.Pool.MaxRequests > 0 {
		b.c.CircuitBreakers = &clusterpb.CircuitBreakers{
			Thresholds: []*clusterpb.CircuitBreakers_Thresholds{{MaxRequests: wrapperspb.UInt32(p.Pool.MaxRequests)}}}
	}
	// Mutual TLS only where a rule asks for it: the client may have been built without credentials from xDS, and
	// nothing tells.
	if meshTLS(p.TLS) {
		b.c.TransportSocket = transportSocket("envoy.transport_sockets.tls", proxylessTLS(k, p))
	}
	return b.c
}

// proxylessName returns the one name that a gRPC client resolves itself; nil if it is to ask for endpoints. It knows no
// cluster of several names.
func proxylessName(k ClusterKey) *EndpointKey {
	all := k
	all.Client.Type = 0
	if !isDNS(all.createdAs()) {
		return nil
	}
	names := inlineEndpoints(k, k.Rule.SubsetLabels(k.Subset))
	if len(names) != 1 {
		return nil
	}
	return &names[0]
}

// proxylessTLS names the certificates as the client's bootstrap does.
func proxylessTLS(k ClusterKey, p value.TrafficPolicy) *tlspb.UpstreamTlsContext {
	names := p.TLS.Names
	if names == nil {
		names = accounts(k)
	}
	return &tlspb.UpstreamTlsContext{CommonTlsContext: providedTLS(names)}
}

// providedTLS returns mutual TLS with the certificates that the bootstrap of a gRPC process names, and peers of these
// names.
func providedTLS(peers []string) *tlspb.CommonTlsContext {
	return &tlspb.CommonTlsContext{
		TlsCertificateProviderInstance: &tlspb.CertificateProviderPluginInstance{InstanceName: "default",
			CertificateName: "default"},
		ValidationContextType: &tlspb.CommonTlsContext_ValidationContext{
			ValidationContext: &tlspb.CertificateValidationContext{
				CaCertificateProviderInstance: &tlspb.CertificateProviderPluginInstance{InstanceName: "default",
					CertificateName: "ROOTCA"},
				MatchSubjectAltNames: exactly(peers),
			}},
	}
}
