package gen

//lint:file-ignore SA1019 istiod sends these deprecated fields, and older proxies know no others

import (
	"slices"
	"strings"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	proxyprotocolpb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/proxy_protocol/v3"
	rawpb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
	tlspb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherpb "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// meshTLS reports whether tls is mutual TLS with the workloads' own certificates.
func meshTLS(tls *value.ClientTLS) bool { return tls != nil && tls.Mode == value.MeshTLS }

// security sets how the cluster's connections are protected: as the policy says, else by mutual TLS with those
// endpoints that speak it.
func (b *clusterBuilder) security(k ClusterKey, p value.TrafficPolicy) {
	tls, auto := p.TLS, false
	if tls == nil && autoMutual(k) {
		tls, auto = &value.ClientTLS{Mode: value.MeshTLS}, true
	}
	if ctx := b.tlsContext(k, tls); ctx != nil {
		b.c.TransportSocket = transportSocket("envoy.transport_sockets.tls", ctx)
	}
	// Connections to an original destination have no endpoint whose metadata could choose a socket.
	if auto && b.c.GetType() != clusterpb.Cluster_ORIGINAL_DST {
		b.c.TransportSocketMatches = []*clusterpb.Cluster_TransportSocketMatch{
			{Name: "tlsMode-istio", Match: textStruct("tlsMode", "istio"), TransportSocket: b.c.TransportSocket},
			{Name: "tlsMode-disabled", Match: &structpb.Struct{}, TransportSocket: rawBuffer()},
		}
		b.c.TransportSocket = nil
	}
	b.proxyProtocol(p.ProxyProtocol)
}

// autoMutual reports whether mutual TLS is used without being asked for, which it is not in a namespace that takes
// plain text alone. Where the endpoints cannot say each for itself whether they speak it (those of headless services,
// and of clusters that pass connections through), all must.
func autoMutual(k ClusterKey) bool {
	if k.Service.External || !k.Mesh.AutoMTLS || k.Peers != nil && k.Peers.Mode == value.Disabled {
		return false
	}
	policy := k.Rule.SubsetPolicy(k.Subset)
	if k.Subset == "" && k.Rule != nil {
		policy = k.Rule.Policy
	}
	if k.Service.Resolution != value.Passthrough && !passthrough(policy.Own().Balancer) {
		return true
	}
	return k.Projection != nil && slices.Contains(k.Projection.MutualTLS, k.Port.Name)
}

// tlsContext returns what tls means for the cluster; nil for plain text.
func (b *clusterBuilder) tlsContext(k ClusterKey, tls *value.ClientTLS) *tlspb.UpstreamTlsContext {
	switch {
	case tls == nil:
	case meshTLS(tls):
		return b.mutualContext(k, tls)
	case tls.Mode == value.MutualTLS:
		if tls.Credential == "" && (tls.Certificate == "" || tls.Key == "") {
			return nil
		}
		return b.originContext(k, tls)
	case tls.Mode == value.SimpleTLS:
		return b.originContext(k, tls)
	}
	return nil
}

// mutualContext returns mutual TLS within the mesh, with the workload's own certificate.
func (b *clusterBuilder) mutualContext(k ClusterKey, tls *value.ClientTLS) *tlspb.UpstreamTlsContext {
	sni, names := tls.SNI, tls.Names
	if sni == "" {
		sni = clusterSNI(k.Port.Number, k.Subset, k.Service.Host)
	}
	if names == nil {
		names = accounts(k)
	}
	common := commonTLS()
	common.TlsCertificateSdsSecretConfigs = []*tlspb.SdsSecretConfig{workloadSecret("default")}
	common.ValidationContextType = validation(&tlspb.CertificateValidationContext{MatchSubjectAltNames: exactly(names)},
		workloadSecret("ROOTCA"))
	common.AlpnProtocols = []string{"istio"}
	if k.Client.Filters.Has(value.TCPMetadataExchange) {
		common.AlpnProtocols = []string{"istio-peer-exchange", "istio"}
	}
	if b.http2() != nil {
		common.AlpnProtocols = append(common.AlpnProtocols, "h2")
	}
	return &tlspb.UpstreamTlsContext{CommonTlsContext: common, Sni: sni}
}

// accounts returns the identities that the endpoints of a service may have, under every name of the trust domain.
func accounts(k ClusterKey) []string {
	var out []string
	add := func(id string) {
		out = append(out, id)
		if path, ok := strings.CutPrefix(id, spiffe); ok {
			_, path, _ = strings.Cut(path, "/")
			for _, alias := range k.Mesh.Aliases {
				out = append(out, spiffe+alias+"/"+path)
			}
		}
	}
	if k.Projection != nil {
		for _, a := range k.Projection.ServiceAccounts {
			add(spiffe + a)
		}
	}
	for _, a := range k.Service.SubjectAltNames {
		if strings.Contains(a, "/") && !strings.Contains(a, "://") {
			a = spiffe + a
		}
		add(a)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

const spiffe = "spiffe://"

// originContext returns TLS that the proxy begins on behalf of the application.
func (b *clusterBuilder) originContext(k ClusterKey, tls *value.ClientTLS) *tlspb.UpstreamTlsContext {
	// A secret of the control plane is for routers, and for workloads that a rule selects: not for all who may see the
	// rule. Roots are.
	if tls.Credential != "" && !strings.HasPrefix(tls.Credential, "configmap://") &&
		k.Client.Type == value.SidecarProxy && k.Rule.Selector() == nil {
		return nil
	}
	b.serverName(tls)
	names := tls.Names
	if len(names) == 0 && k.Service.Registry == value.RegistryExternal {
		names = accounts(k)
	}
	mutual := tls.Mode == value.MutualTLS
	certificate, root := fileSecret("file-cert:"+tls.Certificate+"~"+tls.Key),
		fileSecret("file-root:system")
	if tls.Root != "" {
		root = fileSecret("file-root:" + tls.Root)
	}
	if c := tls.Credential; c != "" {
		certificate, root = credential(c), credential(c+"-cacert")
	}
	common := commonTLS()
	if mutual {
		common.TlsCertificateSdsSecretConfigs = []*tlspb.SdsSecretConfig{certificate}
	}
	if tls.SkipVerify {
		common.ValidationContextType = &tlspb.CommonTlsContext_ValidationContext{
			ValidationContext: &tlspb.CertificateValidationContext{}}
	} else {
		def := &tlspb.CertificateValidationContext{MatchSubjectAltNames: exactly(names)}
		revocations(def, root, tls.CRL)
		common.ValidationContextType = validation(def, root)
	}
	if d := k.Mesh.TLS; d != nil {
		common.TlsParams.EcdhCurves, common.TlsParams.CipherSuites = d.Curves, d.Ciphers
	}
	if b.http2() != nil {
		common.AlpnProtocols = []string{"h2"}
	}
	return &tlspb.UpstreamTlsContext{CommonTlsContext: common, Sni: tls.SNI}
}

// serverName lets Envoy take the server name, and the name to verify, from the request's host where the policy names
// none.
func (b *clusterBuilder) serverName(tls *value.ClientTLS) {
	if tls.SNI != "" {
		return
	}
	b.options().UpstreamHttpProtocolOptions = &corepb.UpstreamHttpProtocolOptions{
		AutoSni: true, AutoSanValidation: len(tls.Names) == 0 && !tls.SkipVerify}
}

func commonTLS() *tlspb.CommonTlsContext {
	return &tlspb.CommonTlsContext{TlsParams: &tlspb.TlsParameters{
		TlsMinimumProtocolVersion: tlspb.TlsParameters_TLSv1_2, TlsMaximumProtocolVersion: tlspb.TlsParameters_TLSv1_3}}
}

func validation(def *tlspb.CertificateValidationContext,
	root *tlspb.SdsSecretConfig) *tlspb.CommonTlsContext_CombinedValidationContext {
	return &tlspb.CommonTlsContext_CombinedValidationContext{
		CombinedValidationContext: &tlspb.CommonTlsContext_CombinedCertificateValidationContext{
			DefaultValidationContext: def, ValidationContextSdsSecretConfig: root}}
}

func exactly(names []string) []*matcherpb.StringMatcher {
	var out []*matcherpb.StringMatcher
	for _, n := range names {
		out = append(out, &matcherpb.StringMatcher{MatchPattern: &matcherpb.StringMatcher_Exact{Exact: n}})
	}
	return out
}

// credential returns a secret of the control plane, asked for on the stream that the cluster came by.
func credential(name string) *tlspb.SdsSecretConfig {
	if !strings.Contains(name, "://") {
		name = "kubernetes://" + name
	}
	return &tlspb.SdsSecretConfig{Name: name, SdsConfig: &corepb.ConfigSource{
		ConfigSourceSpecifier: &corepb.ConfigSource_Ads{Ads: &corepb.AggregatedConfigSource{}},
		ResourceApiVersion:    corepb.ApiVersion_V3}}
}

func transportSocket(name string, config proto.Message) *corepb.TransportSocket {
	return &corepb.TransportSocket{Name: name,
		ConfigType: &corepb.TransportSocket_TypedConfig{TypedConfig: anyOf(config)}}
}

func rawBuffer() *corepb.TransportSocket {
	return transportSocket("envoy.transport_sockets.raw_buffer", &rawpb.RawBuffer{})
}

// proxyProtocol wraps the cluster's sockets, so that connections begin with the client's address.
func (b *clusterBuilder) proxyProtocol(p value.ProxyProtocol) {
	if p == value.NoProxyProtocol {
		return
	}
	version := corepb.ProxyProtocolConfig_V1
	if p == value.ProxyProtocolV2 {
		version = corepb.ProxyProtocolConfig_V2
	}
	wrap := func(inner *corepb.TransportSocket) *corepb.TransportSocket {
		return transportSocket("envoy.transport_sockets.upstream_proxy_protocol",
			&proxyprotocolpb.ProxyProtocolUpstreamTransport{
				Config:          &corepb.ProxyProtocolConfig{Version: version},
				TransportSocket: inner})
	}
	for _, m := range b.c.TransportSocketMatches {
		m.TransportSocket = wrap(m.TransportSocket)
	}
	switch {
	case b.c.TransportSocket != nil:
		b.c.TransportSocket = wrap(b.c.TransportSocket)
	case len(b.c.TransportSocketMatches) == 0: // plain text, under the name that patches of users know it by here
		b.c.TransportSocket = wrap(transportSocket("raw_buffer", &rawpb.RawBuffer{}))
	}
}
