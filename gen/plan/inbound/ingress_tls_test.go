package inbound

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlspb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// TestIngressTLS: a port whose Sidecar object asks for TLS takes that TLS alone where the mesh's is switched off, and
// what the mesh says otherwise.
func TestIngressTLS(t *testing.T) {
	simple := &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_SIMPLE, ServerCertificate: "/c",
		PrivateKey: "/k"}
	mutual := &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_MUTUAL, ServerCertificate: "/c",
		PrivateKey: "/k", CaCertificates: "/r"}
	const own, mesh = "tls [] with file-cert:/c~/k", "default"
	for _, c := range []struct {
		protocol string
		tls      *networking.ServerTLSSettings
		mode     value.MTLSMode
		want     string
	}{
		{"HTTPS", simple, value.Disabled, "http " + own},
		{"TLS", simple, value.Disabled, "bytes " + own},
		{"HTTPS", mutual, value.Disabled, "http " + own + ", client's by file-root:/r"},
		{"HTTPS", &networking.ServerTLSSettings{}, value.Disabled, "bytes raw_buffer []"},
		{"HTTPS", nil, value.Disabled, "bytes raw_buffer []"},
		{"HTTPS", simple, value.Strict, "bytes tls [] with " + mesh + ", client's by ROOTCA"},
	} {
		if got := ingressChains(t, c.protocol, c.tls, c.mode); got != c.want {
			t.Errorf("%s with %v in mode %v: %s, want %s", c.protocol, c.tls, c.mode, got, c.want)
		}
	}
}

// ingressChains returns the filter chains of the one port that a Sidecar object declares: what they carry, the
// transport and the protocols that they match, and the secrets by which they terminate TLS.
func ingressChains(t *testing.T, protocol string, tls *networking.ServerTLSSettings, mode value.MTLSMode) string {
	builder := snapshot.NewBuilder(nil)
	snapshottest.Apply(builder, &snapshottest.Batch{
		Mesh: istio.Mesh(&meshconfig.MeshConfig{RootNamespace: "root"}, "cluster.local", "")})
	sidecar := &value.Sidecar{Meta: value.Meta{Namespace: "shop", Name: "all"},
		SidecarSettings: istio.Sidecar(&networking.Sidecar{Ingress: []*networking.IstioIngressListener{{Tls: tls,
			Port: &networking.SidecarPort{Number: 9080, Protocol: protocol, Name: "p"}}}})}
	facts := &Facts{Traits: value.Traits{IPv4: true}, Namespace: "shop", Sidecar: sidecar,
		Addresses: []string{"10.0.0.1"}, Peers: value.PeerModes{Mode: mode}}
	tables := NewTables(checked.NewFaults())
	overlay := tables.Overlay(builder.View().Snapshot, facts,
		func(string) bool { return true }, nil)
	var out []string
	for _, edit := range overlay.Edits(xdstype.Listener) {
		l := &listenerpb.Listener{}
		if err := proto.Unmarshal(edit.Value.Message(), l); err != nil {
			t.Fatal(err)
		}
		for _, chain := range l.GetFilterChains() {
			if chain.GetName() == "10.0.0.1_9080" {
				out = append(out, describe(t, chain))
			}
		}
	}
	return strings.Join(out, "; ")
}

func describe(t *testing.T, chain *listenerpb.FilterChain) string {
	carries := "bytes"
	if slices.ContainsFunc(chain.GetFilters(), func(f *listenerpb.Filter) bool {
		return strings.HasSuffix(f.GetTypedConfig().GetTypeUrl(), ".HttpConnectionManager")
	}) {
		carries = "http"
	}
	m := chain.GetFilterChainMatch()
	out := fmt.Sprintf("%s %s %v", carries, m.GetTransportProtocol(), m.GetApplicationProtocols())
	if chain.GetTransportSocket() == nil {
		return out
	}
	tls := &tlspb.DownstreamTlsContext{}
	if err := chain.GetTransportSocket().GetTypedConfig().UnmarshalTo(tls); err != nil {
		t.Fatal(err)
	}
	for _, s := range tls.GetCommonTlsContext().GetTlsCertificateSdsSecretConfigs() {
		out += " with " + s.GetName()
	}
	if tls.GetRequireClientCertificate().GetValue() {
		out += ", client's by " + tls.GetCommonTlsContext().GetCombinedValidationContext().
			GetValidationContextSdsSecretConfig().GetName()
	}
	return out
}
