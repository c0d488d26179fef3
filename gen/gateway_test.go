package gen_test

import (
	"slices"
	"testing"

	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestGatewayBytesOfProxies: only where a gateway ends the TLS of other proxies do clients say first who they are.
func TestGatewayBytesOfProxies(t *testing.T) {
	mesh := &value.Mesh{Config: &meshconfig.MeshConfig{}}
	for mode, want := range map[networking.ServerTLSSettings_TLSmode][]string{
		networking.ServerTLSSettings_ISTIO_MUTUAL: {"istio.metadata_exchange", "envoy.filters.network.tcp_proxy"},
		networking.ServerTLSSettings_SIMPLE:       {"envoy.filters.network.tcp_proxy"},
	} {
		chain := gen.GatewayChain(gen.GatewayChainKey{
			Mesh: mesh, Filters: value.AllFilters, ServerNames: "db.example",
			TLS: &networking.ServerTLSSettings{Mode: mode, CredentialName: "cert"},
			TCP: gen.TCPProxyKey{StatPrefix: "db", Upstreams: "db"},
		})
		var got []string
		for _, f := range chain.GetFilters() {
			got = append(got, f.GetName())
		}
		if err := chain.ValidateAll(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", mode, got, err, want)
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
	if want := []string{"envoy.filters.listener.proxy_protocol", "envoy.filters.listener.tls_inspector"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	l.FilterChains = []*listenerpb.FilterChain{{}}
	if err := l.ValidateAll(); err != nil {
		t.Error(err)
	}
}
