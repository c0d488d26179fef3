package istio

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Gateway converts a Gateway. It leaves out servers that forward connections by server name alone (AUTO_PASSTHROUGH),
// because pilotd does not make the clusters that they would forward to.
func Gateway(in *networking.Gateway) value.GatewaySettings {
	out := value.GatewaySettings{}
	if len(in.GetSelector()) > 0 {
		out.Workload = in.GetSelector()
	}
	for _, s := range in.GetServers() {
		if s.GetTls().GetMode() != networking.ServerTLSSettings_AUTO_PASSTHROUGH {
			out.Servers = append(out.Servers, server(s))
		}
	}
	return out
}

func server(in *networking.Server) *value.Server {
	return &value.Server{
		Port: value.ListenerPort{Number: int(in.GetPort().GetNumber()), Name: in.GetPort().GetName(),
			Protocol: serverProtocol(in.GetPort().GetProtocol())},
		Bind: in.GetBind(), Name: in.GetName(), Hosts: each(in.GetHosts(), serverHost),
		TLS: optional(in.GetTls(), serverTLS), Redirect: in.GetTls().GetHttpsRedirect(),
	}
}

// serverProtocol returns the protocol of a Gateway's port; TCP if gateways cannot route it.
func serverProtocol(name string) value.Protocol {
	if p, ok := value.ProtocolNamed(name); ok && p != value.UDP {
		return p
	}
	return value.TCP
}

// serverHost splits "namespace/host". A host without a namespace is for every namespace.
func serverHost(text string) value.ServerHost {
	namespace, host, ok := strings.Cut(text, "/")
	if !ok {
		return value.ServerHost{Namespace: "*", Host: text}
	}
	return value.ServerHost{Namespace: namespace, Host: host}
}

func serverTLS(in *networking.ServerTLSSettings) value.ServerTLS {
	out := value.ServerTLS{
		Mode: serverMode(in.GetMode()), Credentials: list(in.GetCredentialNames()),
		RootCredential: in.GetCaCertCredentialName(), Root: in.GetCaCertificates(),
		CRL:   in.GetCaCrl(),
		Names: list(in.GetSubjectAltNames()), Hashes: list(in.GetVerifyCertificateHash()),
		KeyHashes:  list(in.GetVerifyCertificateSpki()),
		MinVersion: version(in.GetMinProtocolVersion()), MaxVersion: version(in.GetMaxProtocolVersion()),
		Ciphers: list(in.GetCipherSuites()),
	}
	if name := in.GetCredentialName(); name != "" && out.Credentials == nil {
		out.Credentials = []string{name}
	}
	out.Certificates = each(in.GetTlsCertificates(),
		func(c *networking.ServerTLSSettings_TLSCertificate) value.CertificateFiles {
			return value.CertificateFiles{Certificate: c.GetServerCertificate(), Key: c.GetPrivateKey()}
		})
	one := value.CertificateFiles{Certificate: in.GetServerCertificate(), Key: in.GetPrivateKey()}
	if out.Certificates == nil && one != (value.CertificateFiles{}) {
		out.Certificates = []value.CertificateFiles{one}
	}
	return out
}

func serverMode(in networking.ServerTLSSettings_TLSmode) value.TLSMode {
	switch in {
	case networking.ServerTLSSettings_SIMPLE:
		return value.SimpleTLS
	case networking.ServerTLSSettings_MUTUAL:
		return value.MutualTLS
	case networking.ServerTLSSettings_OPTIONAL_MUTUAL:
		return value.OptionalMutualTLS
	case networking.ServerTLSSettings_ISTIO_MUTUAL:
		return value.MeshTLS
	}
	return value.PassthroughTLS
}

func version(in networking.ServerTLSSettings_TLSProtocol) value.TLSVersion {
	switch in {
	case networking.ServerTLSSettings_TLSV1_0:
		return value.TLS10
	case networking.ServerTLSSettings_TLSV1_1:
		return value.TLS11
	case networking.ServerTLSSettings_TLSV1_2:
		return value.TLS12
	case networking.ServerTLSSettings_TLSV1_3:
		return value.TLS13
	}
	return value.TLSAuto
}
