package ingest

import (
	"slices"
	"strings"

	clientnet "istio.io/client-go/pkg/apis/networking/v1"

	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot/value"
)

func gatewayKind() Kind {
	k := custom(Kind{Name: value.KindGateway, Plural: "gateways"},
		func(o *clientnet.Gateway) Message { return &o.Spec }, checkGateway)
	return valued(k, (*joiner).gateway)
}

// gateway makes the value of a Gateway: each server host becomes "namespace/host", and each address canonical.
func (j *joiner) gateway(key value.ObjectKey, o *clientnet.Gateway) *value.Gateway {
	spec := clone(&o.Spec)
	for _, s := range spec.Servers {
		s.Bind = addressOf(s.Bind)
		if s.Tls != nil {
			s.Tls.CipherSuites = cipherSuites(s.Tls.CipherSuites)
		}
		for i, h := range s.Hosts {
			s.Hosts[i] = inNamespace(h, o.Namespace)
		}
	}
	return &value.Gateway{Meta: metaOf(key, o.ObjectMeta), GatewaySettings: istio.Gateway(spec)}
}

// cipherSuites returns those suites of a list that Envoy knows, without duplicates. istiod drops the others too: users
// copy lists from servers that know more, and Envoy would refuse the whole listener.
func cipherSuites(list []string) []string {
	var out []string
	for _, s := range list {
		if slices.Contains(knownCiphers(), s) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// knownCiphers returns the suites up to TLS 1.2 that Envoy's TLS library has. TLS 1.3 suites cannot be selected.
func knownCiphers() []string {
	return []string{
		"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
		"ECDHE-RSA-AES256-GCM-SHA384",
		"ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305", "ECDHE-PSK-CHACHA20-POLY1305",
		"ECDHE-ECDSA-AES128-SHA", "ECDHE-RSA-AES128-SHA",
		"ECDHE-PSK-AES128-CBC-SHA", "ECDHE-ECDSA-AES256-SHA", "ECDHE-RSA-AES256-SHA", "ECDHE-PSK-AES256-CBC-SHA",
		"AES128-GCM-SHA256", "AES256-GCM-SHA384",
		"AES128-SHA", "PSK-AES128-CBC-SHA", "AES256-SHA", "PSK-AES256-CBC-SHA", "DES-CBC3-SHA",
	}
}

// inNamespace returns "namespace/host", with "." replaced by the Gateway's own namespace. A host without a namespace
// gets "*", any namespace.
func inNamespace(host, own string) string {
	ns, name, ok := strings.Cut(host, "/")
	if !ok {
		ns, name = "*", host
	}
	if ns == "." {
		ns = own
	}
	return ns + "/" + strings.ToLower(name)
}
