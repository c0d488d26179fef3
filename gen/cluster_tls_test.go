package gen_test

//lint:file-ignore SA1019 istiod sends these deprecated fields, and older proxies know no others

import (
	"strings"
	"testing"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	proxyprotocolpb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/proxy_protocol/v3"
	tlspb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot/value"
)

// socketOf tells a transport socket in a line: its kind, server name, ALPN, certificate, roots and the names that are
// verified.
func socketOf(t *testing.T, s *corepb.TransportSocket) string {
	t.Helper()
	if s.GetName() != "envoy.transport_sockets.tls" {
		return strings.TrimPrefix(s.GetName(), "envoy.transport_sockets.")
	}
	ctx := &tlspb.UpstreamTlsContext{}
	if err := s.GetTypedConfig().UnmarshalTo(ctx); err != nil {
		t.Fatal(err)
	}
	if err := ctx.ValidateAll(); err != nil {
		t.Error(err)
	}
	c := ctx.GetCommonTlsContext()
	out := "tls sni=" + ctx.GetSni() + " alpn=" + strings.Join(c.GetAlpnProtocols(), ",")
	for _, s := range c.GetTlsCertificateSdsSecretConfigs() {
		out += " cert=" + s.GetName()
	}
	if p := c.GetTlsCertificateProviderInstance(); p != nil {
		out += " cert=" + p.GetInstanceName() + "/" + p.GetCertificateName()
	}
	combined := c.GetCombinedValidationContext()
	if r := combined.GetValidationContextSdsSecretConfig(); r != nil {
		out += " roots=" + r.GetName()
	}
	names := combined.GetDefaultValidationContext().GetMatchSubjectAltNames()
	if v := c.GetValidationContext(); v != nil {
		out += " roots=" + v.GetCaCertificateProviderInstance().GetCertificateName()
		names = v.GetMatchSubjectAltNames()
	}
	for _, n := range names {
		out += " san=" + n.GetExact()
	}
	return out
}

func securityOf(t *testing.T, c *clusterpb.Cluster) string {
	t.Helper()
	var out []string
	if c.GetTransportSocket() != nil {
		out = append(out, socketOf(t, c.GetTransportSocket()))
	}
	for _, m := range c.GetTransportSocketMatches() {
		out = append(out, m.GetName()+": "+socketOf(t, m.GetTransportSocket()))
	}
	return strings.Join(out, "; ")
}

func TestClusterSecurity(t *testing.T) {
	const auto = "tlsMode-istio: tls sni=outbound_.80_._.books.shop.svc.cluster.local alpn=istio-peer-exchange,istio cert=default roots=ROOTCA " +
		"san=spiffe://td/ns/shop/sa/books; tlsMode-disabled: raw_buffer"
	rows := []struct {
		name, mesh, tls string
		change          func(k *gen.ClusterKey)
		want            string
	}{
		{"by itself", "", "", nil, auto},
		{"with nobody known", "", "", func(k *gen.ClusterKey) { k.Projection = nil },
			strings.Replace(auto, " san=spiffe://td/ns/shop/sa/books", "", 1)},
		{"off in the mesh", `{enableAutoMtls: false}`, "", nil, ""},
		{"outside the mesh", "", "", func(k *gen.ClusterKey) { k.Service.External = true }, ""},
		{"aliases of the trust domain", `{trustDomainAliases: [old]}`, "", nil,
			strings.Replace(auto, "san=", "san=spiffe://old/ns/shop/sa/books san=", 1)},
		{"names of the ServiceEntry", "", "",
			func(k *gen.ClusterKey) { k.Service.SubjectAltNames = []string{"a.example", "td/ns/x/sa/y"} },
			strings.Replace(auto, "san=spiffe://td/ns/shop/sa/books",
				"san=a.example san=spiffe://td/ns/shop/sa/books san=spiffe://td/ns/x/sa/y", 1)},
		{"HTTP/2", "", "", func(k *gen.ClusterKey) {
			k.Port = &value.Port{Name: "p", Number: 80,
				Protocol: value.GRPC}
		}, strings.Replace(auto, ",istio ", ",istio,h2 ", 1)},
		{"without Istio's filter", "", "", func(k *gen.ClusterKey) { k.Client.Filters = 0 },
			strings.Replace(auto, "istio-peer-exchange,", "", 1)},
		{"headless, all speak it", "", "", func(k *gen.ClusterKey) {
			k.Service.Resolution, k.Projection = value.Passthrough, speaks("istio", "10.1.1.1", "10.1.1.2")
		}, strings.TrimSuffix(strings.TrimPrefix(auto, "tlsMode-istio: "), "; tlsMode-disabled: raw_buffer")},
		{"headless, one does not", "", "", func(k *gen.ClusterKey) {
			k.Service.Resolution, k.Projection = value.Passthrough, speaks("istio", "10.1.1.1")
			k.Projection.MutualTLS = nil
		}, ""},
		{"passed through, all speak it", "", "", func(k *gen.ClusterKey) {
			k.Rule = clusterRule(t, `{trafficPolicy: {loadBalancer: {simple: PASSTHROUGH}}}`)
		}, strings.TrimSuffix(strings.TrimPrefix(auto, "tlsMode-istio: "), "; tlsMode-disabled: raw_buffer")},
		{"passed through, one does not", "", "", func(k *gen.ClusterKey) {
			k.Rule, k.Projection = clusterRule(t, `{trafficPolicy: {loadBalancer: {simple: PASSTHROUGH}}}`),
				speaks("disabled")
		}, ""},
		{"asked for", "", `{mode: ISTIO_MUTUAL, sni: other, subjectAltNames: [me]}`, nil,
			"tls sni=other alpn=istio-peer-exchange,istio cert=default roots=ROOTCA san=me"},
		{"disabled", "", `{mode: DISABLE}`, nil, ""},
		{"simple", "", `{mode: SIMPLE, sni: a.example}`, nil, "tls sni=a.example alpn= roots=file-root:system"},
		{"mutual", "", `{mode: MUTUAL, clientCertificate: /c, privateKey: /k, caCertificates: /r, subjectAltNames: [x]}`, nil,
			"tls sni= alpn= cert=file-cert:/c~/k roots=file-root:/r san=x"},
		{"mutual without a key", "", `{mode: MUTUAL, clientCertificate: /c}`, nil, ""},
		{"unverified", "", `{mode: SIMPLE, insecureSkipVerify: true}`, nil, "tls sni= alpn= roots="},
		{"secret, for everybody", "", `{mode: SIMPLE, credentialName: s}`, nil, ""},
		{"roots, for everybody", "", `{mode: SIMPLE, credentialName: "configmap://r"}`, nil,
			"tls sni= alpn= roots=configmap://r-cacert"},
		{"secret, for a router", "", `{mode: MUTUAL, credentialName: s}`,
			func(k *gen.ClusterKey) { k.Client.Type = value.Router },
			"tls sni= alpn= cert=kubernetes://s roots=kubernetes://s-cacert"},
		{"gRPC client", "", "", func(k *gen.ClusterKey) { k.Client = gen.ClusterClient{Type: value.Proxyless} }, ""},
		{"gRPC client, asked for", "", `{mode: ISTIO_MUTUAL}`,
			func(k *gen.ClusterKey) { k.Client = gen.ClusterClient{Type: value.Proxyless} },
			"tls sni= alpn= cert=default/default roots=ROOTCA san=spiffe://td/ns/shop/sa/books"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			rule := ""
			if r.tls != "" {
				rule = "{trafficPolicy: {tls: " + r.tls + "}}"
			}
			k := clusterKey(t, r.mesh, rule, "")
			if r.change != nil {
				r.change(&k)
			}
			if got := securityOf(t, valid(t, gen.Cluster(k))); got != r.want {
				t.Errorf("got  %s\nwant %s", got, r.want)
			}
		})
	}
}

func TestServerNameOfTheRequest(t *testing.T) {
	for tls, want := range map[string]string{
		`{mode: SIMPLE, sni: x}`:                       "null",
		`{mode: SIMPLE}`:                               "{auto_san_validation:true,auto_sni:true}",
		`{mode: SIMPLE, subjectAltNames: [a]}`:         "{auto_sni:true}",
		`{mode: SIMPLE, insecureSkipVerify: true}`:     "{auto_sni:true}",
		`{mode: ISTIO_MUTUAL}`:                         "null",
		`{mode: SIMPLE, sni: x, subjectAltNames: [a]}`: "null",
	} {
		c := gen.Cluster(clusterKey(t, "", "{trafficPolicy: {tls: "+tls+"}}", ""))
		if got := fieldsOf(t, c, httpOptions+"/upstream_http_protocol_options"); got != httpOptions+
			"/upstream_http_protocol_options "+want {
			t.Errorf("%s: %s", tls, got)
		}
	}
}

func TestProxyProtocolWrapsEverySocket(t *testing.T) {
	c := gen.Cluster(clusterKey(t, "", `{trafficPolicy: {proxyProtocol: {version: V2}}}`, ""))
	if got := securityOf(t, valid(t,
		c)); got != "tlsMode-istio: upstream_proxy_protocol; tlsMode-disabled: upstream_proxy_protocol" {
		t.Error(got)
	}
	c = gen.Cluster(clusterKey(t, "", `{trafficPolicy: {proxyProtocol: {}, tls: {mode: DISABLE}}}`, ""))
	wrapped := &proxyprotocolpb.ProxyProtocolUpstreamTransport{}
	if err := c.GetTransportSocket().GetTypedConfig().UnmarshalTo(wrapped); err != nil ||
		wrapped.GetTransportSocket().GetName() != "raw_buffer" {
		t.Errorf("plain text under PROXY protocol: %v, %v", wrapped, err)
	}
	if got := securityOf(t, valid(t, c)); got != "upstream_proxy_protocol" {
		t.Error(got)
	}
}

// A gRPC client refuses what it does not know, so nothing of Envoy's is there.
func TestProxylessClusterIsPlain(t *testing.T) {
	k := clusterKey(t, "", `{trafficPolicy: {loadBalancer: {simple: LEAST_REQUEST}, outlierDetection: {},
		connectionPool: {tcp: {maxConnections: 3}, http: {http2MaxRequests: 4}}}}`, "")
	k.Client = gen.ClusterClient{Type: value.Proxyless}
	want := `lb_policy null
filters null
metadata null
common_lb_config null
circuit_breakers {thresholds:[{max_requests:4}]}
eds_cluster_config/service_name outbound|80||books.shop.svc.cluster.local`
	if got := fieldsOf(t, valid(t, gen.Cluster(k)), "lb_policy", "filters", "metadata", "common_lb_config",
		"circuit_breakers", "eds_cluster_config/service_name"); got != want {
		t.Errorf("got\n%s", got)
	}
	k.Rule = clusterRule(t, `{trafficPolicy: {loadBalancer: {consistentHash: {httpHeaderName: x, maglev: {}}}}}`)
	if got := fieldsOf(t, gen.Cluster(k), "lb_policy"); got != "lb_policy null" {
		t.Error(got)
	}
}

// Clusters share a subscription of roots if they name the same list of revoked certificates, or none: Envoy takes an
// update of a secret only if all who share its subscription can use it.
func TestRootsAreApartByListOfRevokedCertificates(t *testing.T) {
	roots := func(tls string) string {
		c := gen.Cluster(clusterKey(t, "", "{trafficPolicy: {tls: "+tls+"}}", ""))
		ctx := &tlspb.UpstreamTlsContext{}
		if err := c.GetTransportSocket().GetTypedConfig().UnmarshalTo(ctx); err != nil {
			t.Fatal(err)
		}
		s := ctx.GetCommonTlsContext().GetCombinedValidationContext().GetValidationContextSdsSecretConfig()
		if s.GetName() != "file-root:system" {
			t.Errorf("%s: the roots are %s", tls, s.GetName())
		}
		var subscriber []string
		for _, g := range s.GetSdsConfig().GetApiConfigSource().GetGrpcServices() {
			for _, h := range g.GetInitialMetadata() {
				subscriber = append(subscriber, h.GetKey()+"="+h.GetValue())
			}
		}
		return strings.Join(subscriber, " ")
	}
	none, one, same, other := roots("{mode: SIMPLE}"), roots("{mode: SIMPLE, caCrl: /a}"),
		roots("{mode: SIMPLE, sni: x, caCrl: /a}"), roots("{mode: SIMPLE, caCrl: /b}")
	if none != "" || one == "" || same != one || other == one || other == "" {
		t.Errorf("without a list %q, with one %q and %q, with another %q", none, one, same, other)
	}
}
