package gen_test

import (
	"fmt"
	"slices"
	"testing"

	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlspb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestGatewayBytesOfProxies: only where a gateway ends the TLS of other proxies do clients say first who they are.
func TestGatewayBytesOfProxies(t *testing.T) {
	mesh := istio.Mesh(&meshconfig.MeshConfig{}, "", "")
	for mode, want := range map[value.TLSMode][]string{
		value.MeshTLS:   {"istio.metadata_exchange", "envoy.filters.network.tcp_proxy"},
		value.SimpleTLS: {"envoy.filters.network.tcp_proxy"},
	} {
		chain := gen.GatewayChain(gen.GatewayChainKey{
			Servers: mesh.Servers, Filters: value.AllFilters, ServerNames: "db.example",
			TLS: &value.ServerTLS{Mode: mode, Credentials: []string{"cert"}},
			TCP: gen.TCPProxyKey{StatPrefix: "db", Upstreams: "db"},
		})
		var got []string
		for _, f := range chain.GetFilters() {
			got = append(got, f.GetName())
		}
		if err := chain.ValidateAll(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: %v, %v; want %v", mode, got, err, want)
		}
	}
}

// TestGatewayProxyProtocol: the client's address is read before anything else.
func TestGatewayProxyProtocol(t *testing.T) {
	l := gen.GatewayHeader(gen.GatewayListenerKey{Bind: "0.0.0.0", Port: 8443, TLS: true, ProxyProtocol: true})
	var got []string
	for _, f := range l.GetListenerFilters() {
		got = append(got, f.GetName())
	}
	if want := []string{"envoy.filters.listener.proxy_protocol",
		"envoy.filters.listener.tls_inspector"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	l.FilterChains = []*listenerpb.FilterChain{{}}
	if err := l.ValidateAll(); err != nil {
		t.Error(err)
	}
}

// TestGatewayCredentials: certificates of several kinds, and which credential has the roots.
func TestGatewayCredentials(t *testing.T) {
	mesh := istio.Mesh(&meshconfig.MeshConfig{}, "", "")
	for _, c := range []struct{ tls, want string }{
		{"mode: MUTUAL\ncredentialName: one", "[kubernetes://one] kubernetes://one-cacert []"},
		{"mode: MUTUAL\ncredentialNames: [rsa, ec]", "[kubernetes://rsa kubernetes://ec] kubernetes://rsa-cacert []"},
		{"mode: OPTIONAL_MUTUAL\ncredentialName: one\ncaCertCredentialName: roots",
			"[kubernetes://one] kubernetes://roots-cacert []"},
		{"mode: SIMPLE\ncredentialName: one\nsubjectAltNames: [client]", "[kubernetes://one]  [client]"},
		{"mode: MUTUAL\ntlsCertificates: [{serverCertificate: a, privateKey: b}, {serverCertificate: c, privateKey: d}]\n" +
			"caCertificates: ca", "[file-cert:a~b file-cert:c~d] file-root:ca []"},
		{"mode: MUTUAL\nserverCertificate: a\nprivateKey: b\ncaCertCredentialName: roots",
			"[file-cert:a~b] kubernetes://roots-cacert []"},
	} {
		in := &networking.ServerTLSSettings{}
		fromYAML(t, c.tls, in)
		gateway := istio.Gateway(&networking.Gateway{Servers: []*networking.Server{{Tls: in}}})
		chain := gen.GatewayChain(gen.GatewayChainKey{Servers: mesh.Servers, TLS: gateway.Servers[0].TLS,
			TCP: gen.TCPProxyKey{StatPrefix: "x", Upstreams: "x"}})
		if err := chain.ValidateAll(); err != nil {
			t.Errorf("%s: %v", c.tls, err)
		}
		tls := &tlspb.DownstreamTlsContext{}
		if err := chain.GetTransportSocket().GetTypedConfig().UnmarshalTo(tls); err != nil {
			t.Fatal(err)
		}
		common := tls.GetCommonTlsContext()
		var certs, names []string
		for _, s := range common.GetTlsCertificateSdsSecretConfigs() {
			certs = append(certs, s.GetName())
		}
		//lint:ignore SA1019 what is sent
		for _, m := range common.GetValidationContext().GetMatchSubjectAltNames() {
			names = append(names, m.GetExact())
		}
		if got := fmt.Sprint(certs, " ",
			common.GetCombinedValidationContext().GetValidationContextSdsSecretConfig().GetName(), " ", names); got != c.want {
			t.Errorf("%s: %s, want %s", c.tls, got, c.want)
		}
	}
}

// TestGatewayRevocations: a file with lists of revoked certificates counts wherever clients' certificates are checked
// by files, and its roots are asked for apart from those of servers without it.
func TestGatewayRevocations(t *testing.T) {
	mesh := istio.Mesh(&meshconfig.MeshConfig{}, "", "")
	const files = "\nserverCertificate: a\nprivateKey: b\ncaCertificates: ca"
	for _, c := range []struct{ tls, want string }{
		{"mode: MUTUAL" + files, ""},
		{"mode: MUTUAL\ncaCrl: /revoked.pem" + files, "/revoked.pem"},
		{"mode: OPTIONAL_MUTUAL\ncaCrl: /revoked.pem" + files, "/revoked.pem"},
		{"mode: ISTIO_MUTUAL\ncaCrl: /revoked.pem", "/revoked.pem"},
		{"mode: ISTIO_MUTUAL", ""},
	} {
		in := &networking.ServerTLSSettings{}
		fromYAML(t, c.tls, in)
		gateway := istio.Gateway(&networking.Gateway{Servers: []*networking.Server{{Tls: in}}})
		chain := gen.GatewayChain(gen.GatewayChainKey{Servers: mesh.Servers, TLS: gateway.Servers[0].TLS,
			TCP: gen.TCPProxyKey{StatPrefix: "x", Upstreams: "x"}})
		tls := &tlspb.DownstreamTlsContext{}
		if err := chain.GetTransportSocket().GetTypedConfig().UnmarshalTo(tls); err != nil {
			t.Fatal(err)
		}
		check := tls.GetCommonTlsContext().GetCombinedValidationContext()
		if got := check.GetDefaultValidationContext().GetCrl().GetFilename(); got != c.want {
			t.Errorf("%s: the list is %q, want %q", c.tls, got, c.want)
		}
		roots := check.GetValidationContextSdsSecretConfig().GetSdsConfig().GetApiConfigSource().GetGrpcServices()
		if len(roots) != 1 || (len(roots[0].GetInitialMetadata()) == 1) != (c.want != "") {
			t.Errorf("%s: the roots are asked for by %v", c.tls, roots)
		}
	}
}
