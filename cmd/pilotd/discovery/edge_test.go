package discovery

import (
	"fmt"

	meshv1 "istio.io/api/networking/v1alpha3"
	networkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// edgeHost returns one of a few hosts that Gateways and VirtualServices bound to them meet at.
func (g generator) edgeHost() string {
	return oneOf(g, "*", "web.example.com", "api.example.com", "*.example.com", "deep.api.example.com")
}

// gateway returns one with a few servers, which conflict as chance makes them.
func (g generator) gateway(m *metav1.ObjectMeta) any {
	m.Name = oneOf(g, "front", "back")
	out := &networkingv1.Gateway{ObjectMeta: *m,
		Spec: meshv1.Gateway{Selector: map[string]string{"app": oneOf(g, "gateway", "gateway", "other")}}}
	names := []string{"one", "two", "three", "four"}
	g.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:1+g.IntN(4)] {
		s := &meshv1.Server{Port: &meshv1.Port{Number: oneOf[uint32](g, 80, 443, 8080), Name: name,
			Protocol: oneOf(g, "HTTP", "HTTP", "HTTPS", "HTTPS", "TLS", "TCP")}}
		if g.IntN(4) == 0 {
			s.Bind = "10.10.0.1"
		}
		for range 1 + g.IntN(2) {
			s.Hosts = append(s.Hosts, oneOf(g, "", "*/", "./", "shop/")+g.edgeHost())
		}
		switch s.Port.Protocol {
		case "HTTPS", "TLS":
			s.Tls = &meshv1.ServerTLSSettings{Mode: oneOf(g, meshv1.ServerTLSSettings_SIMPLE,
				meshv1.ServerTLSSettings_MUTUAL, meshv1.ServerTLSSettings_PASSTHROUGH),
				CredentialName: fmt.Sprint("cert-", g.IntN(2))}
		case "HTTP":
			if g.IntN(3) == 0 {
				s.Tls = &meshv1.ServerTLSSettings{HttpsRedirect: true}
			}
		}
		out.Spec.Servers = append(out.Spec.Servers, s)
	}
	return out
}

// edgeHosts makes a VirtualService one for gateways: with hosts of theirs, and routes for bytes too.
func (g generator) edgeHosts(vs *meshv1.VirtualService) {
	vs.Hosts = []string{g.edgeHost()}
	to := []*meshv1.RouteDestination{{Destination: &meshv1.Destination{Host: oneOf(g, "web", "cart",
		"web.shop.svc.cluster.local"), Port: &meshv1.PortSelector{Number: 80}}}}
	if g.IntN(2) == 0 {
		vs.Tls = []*meshv1.TLSRoute{{Match: []*meshv1.TLSMatchAttributes{{SniHosts: vs.Hosts}}, Route: to}}
	}
	if g.IntN(2) == 0 {
		vs.Tcp = []*meshv1.TCPRoute{{Match: []*meshv1.L4MatchAttributes{{Port: oneOf[uint32](g, 443, 8080)}},
			Route: to}}
	}
}
