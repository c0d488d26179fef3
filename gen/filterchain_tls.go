package gen

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlspb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherpb "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// mutualTLS ends the TLS of other sidecars with the workload's own certificate.
func mutualTLS(k InboundChainsKey, http bool) *corev3.TransportSocket {
	alpn := []string{"h2", "http/1.1"}
	if !http && k.Filters.Has(value.TCPMetadataExchange) {
		alpn = append([]string{"istio-peer-exchange"}, alpn...)
	}
	peers := &tlspb.CertificateValidationContext{}
	for _, domain := range k.Peers.TrustDomains {
		//lint:ignore SA1019 the typed names mean the same, and proxies of all versions know this
		peers.MatchSubjectAltNames = append(peers.MatchSubjectAltNames,
			&matcherpb.StringMatcher{MatchPattern: &matcherpb.StringMatcher_Prefix{Prefix: "spiffe://" + domain + "/"}})
	}
	return &corev3.TransportSocket{
		Name: "envoy.transport_sockets.tls",
		ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: anyOf(&tlspb.DownstreamTlsContext{
			RequireClientCertificate: wrapperspb.Bool(true),
			CommonTlsContext: &tlspb.CommonTlsContext{
				TlsParams:                      meshTLSParams(k.Peers),
				AlpnProtocols:                  alpn,
				TlsCertificateSdsSecretConfigs: []*tlspb.SdsSecretConfig{workloadSecret("default")},
				ValidationContextType: &tlspb.CommonTlsContext_CombinedValidationContext{
					CombinedValidationContext: &tlspb.CommonTlsContext_CombinedCertificateValidationContext{
						DefaultValidationContext:         peers,
						ValidationContextSdsSecretConfig: workloadSecret("ROOTCA"),
					},
				},
			},
		})},
	}
}

// meshTLSParams returns the protocol versions and ciphers of connections inside the mesh.
func meshTLSParams(s *value.PeerSettings) *tlspb.TlsParameters {
	p := &tlspb.TlsParameters{
		TlsMinimumProtocolVersion: tlspb.TlsParameters_TLSv1_2,
		TlsMaximumProtocolVersion: tlspb.TlsParameters_TLSv1_3,
		CipherSuites: []string{
			"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES128-GCM-SHA256",
			"ECDHE-RSA-AES128-GCM-SHA256",
			"AES256-GCM-SHA384", "AES128-GCM-SHA256",
		},
	}
	if s.TLS13 {
		p.TlsMinimumProtocolVersion = tlspb.TlsParameters_TLSv1_3
	}
	return p
}
