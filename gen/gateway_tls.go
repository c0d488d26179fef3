package gen

import (
	"cmp"
	"strings"

	tlspb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/snapshot/value"
)

// serverTLS is how a gateway's server terminates TLS. bytes: what is in it is not HTTP.
func serverTLS(in *networking.ServerTLSSettings, mesh *value.ServerSettings, bytes bool) *tlspb.DownstreamTlsContext {
	common := &tlspb.CommonTlsContext{AlpnProtocols: []string{"h2", "http/1.1"}}
	mode := in.GetMode()
	own := mode == networking.ServerTLSSettings_ISTIO_MUTUAL
	required := own || mode == networking.ServerTLSSettings_MUTUAL
	validates := required || mode == networking.ServerTLSSettings_OPTIONAL_MUTUAL
	if own && bytes {
		common.AlpnProtocols = []string{"istio-peer-exchange", "h2", "http/1.1"}
	}
	certs, root := serverSecrets(in)
	common.TlsCertificateSdsSecretConfigs = certs
	if validates && root != nil {
		check := &tlspb.CertificateValidationContext{VerifyCertificateSpki: in.GetVerifyCertificateSpki(),
			VerifyCertificateHash: in.GetVerifyCertificateHash()}
		//lint:ignore SA1019 the typed names mean the same, and proxies of all versions know this
		check.MatchSubjectAltNames = exactly(in.GetSubjectAltNames())
		common.ValidationContextType = validation(check, root)
	} else if mode == networking.ServerTLSSettings_SIMPLE && len(credentials(in)) > 0 &&
		len(in.GetSubjectAltNames()) > 0 {
		//lint:ignore SA1019 as above
		check := &tlspb.CertificateValidationContext{MatchSubjectAltNames: exactly(in.GetSubjectAltNames())}
		common.ValidationContextType = &tlspb.CommonTlsContext_ValidationContext{ValidationContext: check}
	}
	if !own {
		common.TlsParams = serverParameters(in, mesh)
	}
	return &tlspb.DownstreamTlsContext{CommonTlsContext: common, RequireClientCertificate: wrapperspb.Bool(required)}
}

// serverSecrets are the secrets of the server's certificates and of the roots that it trusts: the workload's own, those
// of credentials of the control plane (the first of which has the roots, unless another one is named for them), or
// files. Without a root it is nil.
func serverSecrets(in *networking.ServerTLSSettings) (certs []*tlspb.SdsSecretConfig, root *tlspb.SdsSecretConfig) {
	if in.GetMode() == networking.ServerTLSSettings_ISTIO_MUTUAL {
		return []*tlspb.SdsSecretConfig{workloadSecret("default")}, workloadSecret("ROOTCA")
	}
	if names := credentials(in); len(names) > 0 {
		for _, name := range names {
			certs = append(certs, credential(name))
		}
		return certs, credential(strings.TrimSuffix(cmp.Or(in.GetCaCertCredentialName(), names[0]), caSuffix) +
			caSuffix)
	}
	for _, c := range in.GetTlsCertificates() {
		certs = append(certs, fileSecret("file-cert:"+c.GetServerCertificate()+"~"+c.GetPrivateKey()))
	}
	if len(certs) == 0 {
		certs = append(certs, fileSecret("file-cert:"+in.GetServerCertificate()+"~"+in.GetPrivateKey()))
	}
	if in.GetCaCertificates() != "" {
		root = fileSecret("file-root:" + in.GetCaCertificates())
	}
	return certs, root
}

// credentials are the names of the credentials with a server's certificates: one for each kind of key, or one.
func credentials(in *networking.ServerTLSSettings) []string {
	if names := in.GetCredentialNames(); len(names) > 0 || in.GetCredentialName() == "" {
		return names
	}
	return []string{in.GetCredentialName()}
}

// caSuffix ends the name of the secret with the roots that belong to a credential.
const caSuffix = "-cacert"

// serverParameters are the versions and ciphers of a server: its own before those of the mesh; nil where neither says
// anything.
func serverParameters(in *networking.ServerTLSSettings, mesh *value.ServerSettings) *tlspb.TlsParameters {
	out := &tlspb.TlsParameters{}
	out.EcdhCurves, out.CipherSuites = mesh.Curves, mesh.Ciphers
	out.TlsMinimumProtocolVersion = tlsVersion(mesh.MinVersion)
	if v := in.GetMinProtocolVersion(); v != networking.ServerTLSSettings_TLS_AUTO {
		out.TlsMinimumProtocolVersion = tlspb.TlsParameters_TlsProtocol(v)
	}
	if v := in.GetMaxProtocolVersion(); v != networking.ServerTLSSettings_TLS_AUTO {
		out.TlsMaximumProtocolVersion = tlspb.TlsParameters_TlsProtocol(v)
	}
	if c := in.GetCipherSuites(); len(c) > 0 {
		out.CipherSuites = c
	}
	if len(out.EcdhCurves)+len(out.CipherSuites) == 0 && out.TlsMinimumProtocolVersion == 0 &&
		out.TlsMaximumProtocolVersion == 0 {
		return nil
	}
	return out
}

// tlsVersion is Envoy's word for a version.
func tlsVersion(v value.TLSVersion) tlspb.TlsParameters_TlsProtocol {
	switch v {
	case value.TLS10:
		return tlspb.TlsParameters_TLSv1_0
	case value.TLS11:
		return tlspb.TlsParameters_TLSv1_1
	case value.TLS12:
		return tlspb.TlsParameters_TLSv1_2
	case value.TLS13:
		return tlspb.TlsParameters_TLSv1_3
	}
	return tlspb.TlsParameters_TLS_AUTO
}
