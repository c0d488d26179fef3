package istio

import (
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Mesh converts the mesh configuration of a process that serves the cluster with that name and DNS domain. The input
// has all defaults applied.
func Mesh(in *meshconfig.MeshConfig, domain, cluster string) *value.Mesh {
	connections := &value.ConnectionSettings{ConnectTimeout: duration(in.GetConnectTimeout()),
		Keepalive: keepalive(in.GetTcpKeepalive())}
	domains := append([]string{in.GetTrustDomain()}, in.GetTrustDomainAliases()...)
	return &value.Mesh{
		DomainSuffix: domain, ClusterID: cluster, RootNamespace: in.GetRootNamespace(),
		OutboundPort: int(in.GetProxyListenPort()), InboundPort: int(in.GetProxyInboundListenPort()),
		Detection:     duration(in.GetProtocolDetectionTimeout()),
		Loopback:      in.GetInboundTrafficPolicy().GetMode() == meshconfig.MeshConfig_InboundTrafficPolicy_LOCALHOST,
		InboundStat:   in.GetInboundClusterStatName(),
		ProxyProtocol: in.GetDefaultConfig().GetGatewayTopology().GetProxyProtocol() != nil,

		Outbound:    outbound(in.GetOutboundTrafficPolicy()),
		HTTP:        httpSettings(in),
		Routes:      routes(in),
		Connections: connections,
		Clusters:    clusters(in, connections, domain),
		Peers: &value.PeerSettings{
			TrustDomains: domains,
			TLS13:        in.GetMeshMTLS().GetMinProtocolVersion() == meshconfig.MeshConfig_TLSConfig_TLSV1_3,
		},
		Servers: servers(in.GetTlsDefaults()),
		Access: &value.AccessSettings{TrustDomains: domains,
			Providers: authorizationProviders(in.GetExtensionProviders())},
	}
}

func outbound(in *meshconfig.MeshConfig_OutboundTrafficPolicy) *value.OutboundPolicy {
	out := &value.OutboundPolicy{TLS: optional(in.GetTls(), ClientTLS)}
	switch {
	case in != nil && in.GetMode() == meshconfig.MeshConfig_OutboundTrafficPolicy_REGISTRY_ONLY:
		out.Mode = value.RegistryOnly
	case in.GetMode() == meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY_DYNAMIC_DNS:
		out.Mode = value.AllowAnyDynamicDNS
	}
	return out
}

func httpSettings(in *meshconfig.MeshConfig) *value.HTTPSettings {
	ph, topology := in.GetDefaultConfig().GetProxyHeaders(), in.GetDefaultConfig().GetGatewayTopology()
	cert := ph.GetSetCurrentClientCertDetails()
	out := &value.HTTPSettings{
		KeepServer:     ph.GetServer().GetDisabled().GetValue(),
		NoRequestID:    ph.GetRequestId().GetDisabled().GetValue(),
		NoDebugHeaders: ph.GetEnvoyDebugHeaders().GetDisabled().GetValue(),
		MetadataInMesh: ph.GetMetadataExchangeHeaders().GetMode() == meshconfig.ProxyConfig_ProxyHeaders_IN_MESH,
		ForwardCert:    forwardCert(ph.GetForwardedClientCert()),
		Cert: value.CertDetails{Subject: boolean(cert.GetSubject()), Cert: boolean(cert.GetCert()),
			Chain: boolean(cert.GetChain()), DNS: boolean(cert.GetDns()), URI: boolean(cert.GetUri())},
		Paths:          paths(in.GetPathNormalization().GetNormalization()),
		TrustedProxies: topology.GetNumTrustedProxies(),
		GatewayCert:    forwardCert(topology.GetForwardClientCertDetails()),
	}
	if !out.KeepServer {
		out.ServerName = ph.GetServer().GetValue()
	}
	return out
}

func forwardCert(in meshconfig.ForwardClientCertDetails) value.ForwardCert {
	switch in {
	case meshconfig.ForwardClientCertDetails_UNDEFINED:
		return value.ForwardUnset
	case meshconfig.ForwardClientCertDetails_FORWARD_ONLY:
		return value.ForwardOnly
	case meshconfig.ForwardClientCertDetails_APPEND_FORWARD:
		return value.AppendForward
	case meshconfig.ForwardClientCertDetails_SANITIZE_SET:
		return value.SanitizeSet
	case meshconfig.ForwardClientCertDetails_ALWAYS_FORWARD_ONLY:
		return value.AlwaysForwardOnly
	}
	return value.Sanitize
}

func paths(in meshconfig.MeshConfig_ProxyPathNormalization_NormalizationType) value.PathNormalization {
	switch in {
	case meshconfig.MeshConfig_ProxyPathNormalization_NONE:
		return value.LeavePaths
	case meshconfig.MeshConfig_ProxyPathNormalization_MERGE_SLASHES:
		return value.MergeSlashes
	case meshconfig.MeshConfig_ProxyPathNormalization_DECODE_AND_MERGE_SLASHES:
		return value.DecodeSlashes
	}
	return value.NormalizePaths
}

func routes(in *meshconfig.MeshConfig) *value.RouteSettings {
	count := in.GetDefaultConfig().GetProxyHeaders().GetAttemptCount()
	return &value.RouteSettings{Retries: optional(in.GetDefaultHttpRetryPolicy(), Retries),
		CountAttempts: !count.GetDisabled().GetValue()}
}

func clusters(in *meshconfig.MeshConfig, connections *value.ConnectionSettings, domain string) *value.ClusterSettings {
	policy := in.GetDefaultTrafficPolicy()
	return &value.ClusterSettings{
		Connections: connections,
		Pool:        optional(policy.GetConnectionPool(), Pool),
		Outlier:     optional(policy.GetOutlierDetection(), Outlier),
		Locality:    optional(in.GetLocalityLbSetting(), Locality),
		Upgrade:     in.GetH2UpgradePolicy() == meshconfig.MeshConfig_UPGRADE,
		AutoMTLS:    in.GetEnableAutoMtls().GetValue(),
		DNSRefresh:  duration(in.GetDnsRefreshRate()),
		Aliases:     list(in.GetTrustDomainAliases()),
		TLS:         optional(in.GetTlsDefaults(), tlsSettings),
		Stat:        in.GetOutboundClusterStatName(), DomainSuffix: domain,
	}
}

func tlsSettings(in *meshconfig.MeshConfig_TLSConfig) value.TLSSettings {
	return value.TLSSettings{Curves: list(in.GetEcdhCurves()), Ciphers: list(in.GetCipherSuites())}
}

func servers(in *meshconfig.MeshConfig_TLSConfig) *value.ServerSettings {
	out := &value.ServerSettings{TLSSettings: tlsSettings(in)}
	switch in.GetMinProtocolVersion() {
	case meshconfig.MeshConfig_TLSConfig_TLSV1_2:
		out.MinVersion = value.TLS12
	case meshconfig.MeshConfig_TLSConfig_TLSV1_3:
		out.MinVersion = value.TLS13
	}
	return out
}
