package ingest

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	clientnet "istio.io/client-go/pkg/apis/networking/v1"
)

func checkSidecar(o *clientnet.Sidecar) *problem {
	c, spec := &check{}, &o.Spec
	c.labels("spec.workloadSelector.labels", spec.GetWorkloadSelector().GetLabels())
	c.that(len(spec.Ingress)+len(spec.Egress) > 0 || spec.OutboundTrafficPolicy != nil ||
		spec.InboundConnectionPool != nil, "spec",
		"expected at least one of ingress, egress, outboundTrafficPolicy and inboundConnectionPool")
	ports := set[uint32]{}
	for i, l := range spec.Ingress {
		at := item("spec.ingress", i)
		c.ingress(at, l)
		c.that(firstTime(ports, l.GetPort().GetNumber()), at+".port.number", "%d is used twice",
			l.GetPort().GetNumber())
	}
	sockets := set[egressSocket]{}
	for i, l := range spec.Egress {
		at := item("spec.egress", i)
		c.egress(at, l)
		c.that(l.GetPort() != nil || i == len(spec.Egress)-1, at+".port",
			"expected a port: only the last listener has none")
		if l.GetPort() != nil {
			c.that(firstTime(sockets, socketOf(l)), at+".port.number",
				"expected a port, or a socket, that no other listener has")
		}
	}
	if p := spec.GetOutboundTrafficPolicy(); p.GetEgressProxy() != nil {
		at := "spec.outboundTrafficPolicy.egressProxy"
		c.that(p.GetMode() == networking.OutboundTrafficPolicy_ALLOW_ANY, at,
			"expected none unless the mode is ALLOW_ANY")
		c.that(p.GetEgressProxy().GetPort() != nil, at+".port", "expected a port")
		c.destination(at, p.GetEgressProxy(), false)
	}
	c.pool("spec.inboundConnectionPool", spec.InboundConnectionPool)
	return c.first
}

// egressSocket identifies what an outbound listener binds to, which no two may share: a port, or a socket's path.
type egressSocket struct {
	port uint32
	path string
}

func socketOf(l *networking.IstioEgressListener) egressSocket {
	if n := l.GetPort().GetNumber(); n != 0 {
		return egressSocket{port: n}
	}
	return egressSocket{path: l.GetBind()}
}

func (c *check) ingress(at string, l *networking.IstioIngressListener) {
	c.that(l.GetPort() != nil, at+".port", "expected a port")
	c.protocol(at+".port.protocol", l.GetPort().GetProtocol())
	c.port(at+".port.number", l.GetPort().GetNumber())
	if l.GetBind() != "" { // inbound traffic comes to an address, never to a socket
		c.address(at+".bind", l.GetBind())
	}
	c.defaultEndpoint(at+".defaultEndpoint", l.GetDefaultEndpoint())
	c.pool(at+".connectionPool", l.GetConnectionPool())
	t := l.GetTls()
	if t == nil {
		return
	}
	at += ".tls"
	c.that(parseProtocol(l.GetPort().GetProtocol()).IsTLS(), at, "expected none for protocol %s",
		l.GetPort().GetProtocol())
	c.that(len(t.SubjectAltNames) == 0, at+".subjectAltNames", "expected none here")
	c.that(!t.HttpsRedirect, at+".httpsRedirect", "expected none here")
	c.that(t.CredentialName == "" && len(t.CredentialNames) == 0 && len(t.TlsCertificates) == 0, at,
		"expected certificates from files: serverCertificate and privateKey")
	c.that(t.Mode != networking.ServerTLSSettings_ISTIO_MUTUAL &&
		t.Mode != networking.ServerTLSSettings_AUTO_PASSTHROUGH, at+".mode", "mode %s is not for a Sidecar", t.Mode)
	c.serverTLS(at, &networking.Server{Tls: t, Port: &networking.Port{Protocol: l.GetPort().GetProtocol()}})
}

func (c *check) egress(at string, l *networking.IstioEgressListener) {
	if p := l.GetPort(); p != nil {
		c.protocol(at+".port.protocol", p.GetProtocol())
		c.bind(at, l.GetBind(), p.GetNumber())
		c.that(p.GetNumber() != 0 || l.GetCaptureMode() != networking.CaptureMode_IPTABLES, at+".captureMode",
			"expected DEFAULT or NONE for a socket")
	}
	c.that(len(l.GetHosts()) > 0, at+".hosts", "expected at least one host")
	for j, h := range l.GetHosts() {
		if rest, ok := strings.CutPrefix(h, "~"); ok && !strings.HasPrefix(rest, "/") {
			h = rest // "~namespace/host" excludes hosts that another entry imports
		}
		c.hostIn(item(at+".hosts", j), h, false, ".", "~")
	}
}

// defaultEndpoint checks where an ingress listener forwards to: a local address and port, or a socket; empty means the
// workload itself.
func (c *check) defaultEndpoint(at, s string) {
	if path, ok := strings.CutPrefix(s, "unix://"); ok {
		c.socket(at, path)
		return
	}
	if s == "" {
		return
	}
	i := strings.LastIndexByte(s, ':')
	host := s[:max(i, 0)]
	c.that(i > 0 && slices.Contains([]string{"127.0.0.1", "0.0.0.0", "[::1]", "[::]"}, host) && isPort(s[i+1:]), at,
		"expected 127.0.0.1, 0.0.0.0, [::1] or [::] with a port, or unix:// and a path, got %q", s)
}
