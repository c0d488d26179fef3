package ingest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	clientnet "istio.io/client-go/pkg/apis/networking/v1"
)

func checkGateway(o *clientnet.Gateway) *problem {
	c, spec := &check{}, &o.Spec
	c.that(isLabel(o.Name), "metadata.name", "expected a name without dots, got %q", o.Name)
	c.labels("spec.selector", spec.Selector)
	c.that(len(spec.Servers) > 0, "spec.servers", "expected at least one server")
	names := set[string]{}
	for i, s := range spec.Servers {
		at := item("spec.servers", i)
		c.that(s.GetPort() != nil, at+".port", "expected a port")
		c.that(s.GetPort().GetName() != "", at+".port.name", "expected a name")
		//lint:ignore SA1019 older objects still use it
		c.that(s.GetPort().GetTargetPort() == 0, at+".port.targetPort", "expected none: it has no meaning here")
		c.protocol(at+".port.protocol", s.GetPort().GetProtocol())
		c.bind(at, s.GetBind(), s.GetPort().GetNumber())
		c.that(firstTime(names, s.GetPort().GetName()), at+".port.name", "%q is used twice", s.GetPort().GetName())
		c.that(len(s.GetHosts()) > 0, at+".hosts", "expected at least one host")
		for j, h := range s.GetHosts() {
			c.hostIn(item(at+".hosts", j), h, true, ".")
			// The listener selects the server of a connection by the server name that it asks for.
			if parseProtocol(s.GetPort().GetProtocol()).IsTLS() {
				_, host, found := strings.Cut(h, "/")
				if !found {
					host = h
				}
				c.serverName(item(at+".hosts", j), host)
			}
		}
		c.serverTLS(at+".tls", s)
	}
	return c.first
}

// bind checks an address to listen on: an IP address with a port, or a socket path without one.
func (c *check) bind(at, bind string, port uint32) {
	if path, ok := strings.CutPrefix(bind, "unix://"); ok {
		c.socket(at+".bind", path)
		c.that(port == 0, at+".port.number", "expected 0 for a socket, got %d", port)
		return
	}
	c.port(at+".port.number", port)
	if bind != "" {
		c.address(at+".bind", bind)
	}
}

func (c *check) serverTLS(at string, s *networking.Server) {
	t, p := s.GetTls(), parseProtocol(s.GetPort().GetProtocol())
	if t == nil {
		c.that(!p.IsTLS(), at, "expected TLS settings for protocol %s", s.GetPort().GetProtocol())
		return
	}
	for i, h := range t.VerifyCertificateHash {
		c.that(isHash(h), item(at+".verifyCertificateHash", i),
			"expected the SHA-256 of a certificate as 64 hexadecimal digits, or pairs of them with colons between, got %q", h)
	}
	for i, h := range t.VerifyCertificateSpki {
		sum, err := base64.StdEncoding.DecodeString(h)
		c.that(err == nil && len(sum) == sha256.Size && len(h) == base64.StdEncoding.EncodedLen(sha256.Size),
			item(at+".verifyCertificateSpki", i),
			"expected the SHA-256 of a public key in base64, got %q", h)
	}
	certificates := t.CredentialName != "" || len(t.CredentialNames) > 0 || len(t.TlsCertificates) > 0 ||
		t.ServerCertificate != "" && t.PrivateKey != ""
	if !p.IsTLS() {
		c.that(p.IsHTTP() && t.Mode == networking.ServerTLSSettings_PASSTHROUGH && !certificates, at,
			"expected only httpsRedirect for protocol %s", s.GetPort().GetProtocol())
		return
	}
	sources := 0
	for _, given := range []bool{t.ServerCertificate != "" && t.PrivateKey != "", t.CredentialName != "",
		len(t.CredentialNames) > 0, len(t.TlsCertificates) > 0} {
		if given {
			sources++
		}
	}
	c.that(sources <= 1, at, "expected only one of serverCertificate with privateKey, credentialName, credentialNames and tlsCertificates")
	c.that(t.CaCrl == "" || t.CredentialName == "" && len(t.CredentialNames) == 0 && t.CaCertCredentialName == "" &&
		t.Mode != networking.ServerTLSSettings_SIMPLE, at+".caCrl",
		"expected none for mode SIMPLE, nor beside a credential, whose Secret is to have the list (ca.crl or crl)")
	switch t.Mode {
	case networking.ServerTLSSettings_SIMPLE, networking.ServerTLSSettings_OPTIONAL_MUTUAL:
		c.that(certificates, at, "expected serverCertificate and privateKey, or credentialName, for mode %s", t.Mode)
	case networking.ServerTLSSettings_MUTUAL:
		c.that(certificates, at, "expected serverCertificate and privateKey, or credentialName, for mode MUTUAL")
		c.that(t.CaCertificates != "" || t.CredentialName != "" || len(t.CredentialNames) > 0 ||
			t.CaCertCredentialName != "", at+
			".caCertificates", "expected the certificates of clients' authorities for mode MUTUAL")
	case networking.ServerTLSSettings_ISTIO_MUTUAL:
		c.that(!certificates && t.CaCertificates == "", at, "expected no certificates for mode ISTIO_MUTUAL")
	}
}

// isHash reports whether s is a SHA-256 hash in one of the two forms that Envoy reads: hexadecimal digits, with or
// without colons between the pairs.
func isHash(s string) bool {
	if n := sha256.Size; len(s) == 3*n-1 {
		for i := range n - 1 {
			if s[3*i+2] != ':' {
				return false
			}
		}
		s = strings.ReplaceAll(s, ":", "")
	}
	sum, err := hex.DecodeString(s)
	return err == nil && len(sum) == sha256.Size
}
