package gen

import (
	"cmp"
	"strings"

	tlspb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// serverTLS returns how a gateway's server terminates TLS. bytes: what is in it is not HTTP.
func serverTLS(in *value.ServerTLS, mesh *value.ServerSettings, bytes bool) *tlspb.DownstreamTlsContext {
	common := &tlspb.CommonTlsContext{AlpnProtocols: []string{"h2", "http/1.1"}}
	own := in.Mode == value.MeshTLS
	required := own || in.Mode == value.MutualTLS
	validates := required || in.Mode == value.OptionalMutualTLS
	if own && bytes {
		common.AlpnProtocols = []string{"istio-peer-exchange", "h2", "http/1.1"}
	}
	certs, root := serverSecrets(in)
	common.TlsCertificateSdsSecretConfigs = certs
	if validates && root != nil {
		check := &tlspb.CertificateValidationContext{VerifyCertificateSpki: in.KeyHashes, VerifyCertificateHash: in.Hashes}
		//lint:ignore SA1019 the typed names mean the same, and proxies of all versions know this
		check.MatchSubjectAltNames = exactly(in.Names)
		revocations(check, root, in.CRL)
		common.ValidationContextType = validation(check, root)
	} else if in.Mode == value.SimpleTLS && len(in.Credentials) > 0 && len(in.Names) > 0 {
		//lint:ignore SA1019 as above
		check := &tlspb.CertificateValidationContext{MatchSubjectAltNames: exactly(in.Names)}
		common.ValidationContextType = &tlspb.CommonTlsContext_ValidationContext{ValidationContext: check}
	}
	if !own {
		common.TlsParams = serverParameters(in, mesh)
	}
	return &tlspb.DownstreamTlsContext{CommonTlsContext: common, RequireClientCertificate: wrapperspb.Bool(required)}
}

// serverSecrets returns the secrets of the server's certificates and of the roots that it trusts: the workload's own,
// those of credentials of the control plane (the first of which has the roots, unless another one is named for them),
// or files, beside which a credential may have the roots. Without a root it is nil.
func serverSecrets(in *value.ServerTLS) (certs []*tlspb.SdsSecretConfig, root *tlspb.SdsSecretConfig) {
	if in.Mode == value.MeshTLS {
		return []*tlspb.SdsSecretConfig{workloadSecret("default")}, workloadSecret("ROOTCA")
	}
	if len(in.Credentials) > 0 {
		for _, name := range in.Credentials {
			certs = append(certs, credential(name))
		}
		return certs, rootCredential(cmp.Or(in.RootCredential, in.Credentials[0]))
	}
	for _, c := range in.Certificates {
		certs = append(certs, fileSecret("file-cert:"+c.Certificate+"~"+c.Key))
	}
	switch {
	case in.Root != "":
		root = fileSecret("file-root:" + in.Root)
	case in.RootCredential != "":
		root = rootCredential(in.RootCredential)
	}
	return certs, root
}

// rootCredential returns the secret with the roots that belong to a credential.
func rootCredential(name string) *tlspb.SdsSecretConfig {
	return credential(strings.TrimSuffix(name, caSuffix) + caSuffix)
}

// caSuffix ends the name of the secret with the roots that belong to a credential.
const caSuffix = "-cacert"

// serverParameters returns the versions and ciphers of a server: its own before those of the mesh; nil where neither
// says anything.
func serverParameters(in *value.ServerTLS, mesh *value.ServerSettings) *tlspb.TlsParameters {
	out := &tlspb.TlsParameters{
		EcdhCurves: mesh.Curves, CipherSuites: mesh.Ciphers,
		TlsMinimumProtocolVersion: tlsVersion(cmp.Or(in.MinVersion, mesh.MinVersion)),
		TlsMaximumProtocolVersion: tlsVersion(in.MaxVersion),
	}
	if len(in.Ciphers) > 0 {
		out.CipherSuites = in.Ciphers
	}
	if len(out.EcdhCurves)+len(out.CipherSuites) == 0 && out.TlsMinimumProtocolVersion == 0 &&
		out.TlsMaximumProtocolVersion == 0 {
		return nil
	}
	return out
}

// tlsVersion returns how Envoy calls a version.
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
