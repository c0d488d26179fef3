package gen

import (
	"strings"

	tlspb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/snapshot/value"
)

// serverTLS is how a gateway's server terminates TLS. bytes: what is in it is not HTTP.
func serverTLS(in *networking.ServerTLSSettings, mesh *value.Mesh, bytes bool) *tlspb.DownstreamTlsContext {
	common := &tlspb.CommonTlsContext{AlpnProtocols: []string{"h2", "http/1.1"}}
	mode := in.GetMode()
	own := mode == networking.ServerTLSSettings_ISTIO_MUTUAL
	required := own || mode == networking.ServerTLSSettings_MUTUAL
	validates := required || mode == networking.ServerTLSSettings_OPTIONAL_MUTUAL
	if own && bytes {
		common.AlpnProtocols = []string{"istio-peer-exchange", "h2", "http/1.1"}
	}
	cert, root := serverSecrets(in)
	common.TlsCertificateSdsSecretConfigs = []*tlspb.SdsSecretConfig{cert}
	if validates && root != nil {
		check := &tlspb.CertificateValidationContext{VerifyCertificateSpki: in.GetVerifyCertificateSpki(), VerifyCertificateHash: in.GetVerifyCertificateHash()}
		//lint:ignore SA1019 the typed names mean the same, and proxies of all versions know this
		check.MatchSubjectAltNames = exactly(in.GetSubjectAltNames())
		common.ValidationContextType = validation(check, root)
	}
	if !own {
		common.TlsParams = serverParameters(in, mesh)
	}
	return &tlspb.DownstreamTlsContext{CommonTlsContext: common, RequireClientCertificate: wrapperspb.Bool(required)}
}

// serverSecrets are the secrets of the server's certificate and of the roots that it trusts: the workload's own, those of a credential of the
// control plane, or files. Without a root it is nil.
func serverSecrets(in *networking.ServerTLSSettings) (cert, root *tlspb.SdsSecretConfig) {
	switch name := in.GetCredentialName(); {
	case in.GetMode() == networking.ServerTLSSettings_ISTIO_MUTUAL:
		return workloadSecret("default"), workloadSecret("ROOTCA")
	case name != "":
		return credential(name), credential(strings.TrimSuffix(name, caSuffix) + caSuffix)
	}
	if in.GetCaCertificates() != "" {
		root = fileSecret("file-root:" + in.GetCaCertificates())
	}
	return fileSecret("file-cert:" + in.GetServerCertificate() + "~" + in.GetPrivateKey()), root
}

// caSuffix ends the name of the secret with the roots that belong to a credential.
const caSuffix = "-cacert"

// serverParameters are the versions and ciphers of a server: its own before those of the mesh; nil where neither says anything.
func serverParameters(in *networking.ServerTLSSettings, mesh *value.Mesh) *tlspb.TlsParameters {
	out := &tlspb.TlsParameters{}
	d := mesh.Config.GetTlsDefaults()
	out.EcdhCurves, out.CipherSuites = d.GetEcdhCurves(), d.GetCipherSuites()
	switch d.GetMinProtocolVersion() {
	case meshconfig.MeshConfig_TLSConfig_TLSV1_2:
		out.TlsMinimumProtocolVersion = tlspb.TlsParameters_TLSv1_2
	case meshconfig.MeshConfig_TLSConfig_TLSV1_3:
		out.TlsMinimumProtocolVersion = tlspb.TlsParameters_TLSv1_3
	}
	if v := in.GetMinProtocolVersion(); v != networking.ServerTLSSettings_TLS_AUTO {
		out.TlsMinimumProtocolVersion = tlspb.TlsParameters_TlsProtocol(v)
	}
	if v := in.GetMaxProtocolVersion(); v != networking.ServerTLSSettings_TLS_AUTO {
		out.TlsMaximumProtocolVersion = tlspb.TlsParameters_TlsProtocol(v)
	}
	if c := in.GetCipherSuites(); len(c) > 0 {
		out.CipherSuites = c
	}
	if len(out.EcdhCurves)+len(out.CipherSuites) == 0 && out.TlsMinimumProtocolVersion == 0 && out.TlsMaximumProtocolVersion == 0 {
		return nil
	}
	return out
}
