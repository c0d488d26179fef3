package discovery

import (
	"fmt"
	"math/rand/v2"

	meshv1 "istio.io/api/networking/v1alpha3"
	securityv1 "istio.io/api/security/v1beta1"
	typev1beta1 "istio.io/api/type/v1beta1"
	networkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	clientsec "istio.io/client-go/pkg/apis/security/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// generator draws random objects over a small world, so that they meet.
type generator struct{ *rand.Rand }

func oneOf[T any](g generator, from ...T) T { return from[g.IntN(len(from))] }

func (g generator) namespace() string { return oneOf(g, "shop", "team-b", "istio-system") }

func (g generator) app() string { return oneOf(g, "web", "cart", "db") }

// event returns a change of a random object: mostly an edit or an addition, sometimes a deletion.
func (g generator) event() ingest.Event {
	kind := oneOf(g, value.KindService, value.KindService, value.KindPod, value.KindPod, value.KindPod,
		value.KindEndpointSlice, value.KindEndpointSlice, value.KindEndpointSlice,
		value.KindServiceEntry, value.KindWorkloadEntry, value.KindVirtualService, value.KindVirtualService,
		value.KindDestinationRule, value.KindGateway,
		value.KindSidecar, value.KindPeerAuthentication, value.KindAuthorizationPolicy, value.KindRequestAuthentication,
		value.KindNode, value.KindNamespace,
		value.KindMeshConfig)
	m := metav1.ObjectMeta{Namespace: g.namespace(), Name: g.app(), CreationTimestamp: metav1.Unix(int64(g.IntN(4)), 0)}
	e := ingest.Event{Source: "test"}
	object := g.object(kind, &m)
	e.Key = value.ObjectKey{Kind: kind, Namespace: m.Namespace, Name: m.Name}
	if g.IntN(4) > 0 {
		e.Object = object
	}
	return e
}

func (g generator) object(kind value.Kind, m *metav1.ObjectMeta) any {
	switch kind {
	case value.KindService:
		return g.service(m)
	case value.KindPod:
		return g.pod(m)
	case value.KindEndpointSlice:
		return g.slice(m)
	case value.KindServiceEntry:
		return g.serviceEntry(m)
	case value.KindWorkloadEntry:
		m.Name = "vm"
		return &networkingv1.WorkloadEntry{ObjectMeta: *m, Spec: meshv1.WorkloadEntry{Address: g.address(),
			Labels: map[string]string{"app": g.app()}, ServiceAccount: g.app()}}
	case value.KindVirtualService:
		return g.virtualService(m)
	case value.KindDestinationRule:
		return g.rule(m)
	case value.KindGateway:
		return g.gateway(m)
	case value.KindSidecar:
		m.Name = oneOf(g, "default", "web")
		s := &networkingv1.Sidecar{ObjectMeta: *m,
			Spec: meshv1.Sidecar{Egress: []*meshv1.IstioEgressListener{{Hosts: []string{oneOf(g, "./*", "shop/*", "*/*",
				"*/web.shop.svc.cluster.local")}}}}}
		if m.Name == "web" {
			s.Spec.WorkloadSelector = &meshv1.WorkloadSelector{Labels: map[string]string{"app": "web"}}
		}
		return s
	case value.KindPeerAuthentication:
		return g.peers(m)
	case value.KindRequestAuthentication:
		p := &clientsec.RequestAuthentication{ObjectMeta: *m, Spec: securityv1.RequestAuthentication{
			JwtRules: []*securityv1.JWTRule{{Issuer: g.app()}}}}
		if g.IntN(2) == 0 {
			p.Spec.Selector = &typev1beta1.WorkloadSelector{MatchLabels: map[string]string{"app": g.app()}}
		}
		return p
	case value.KindAuthorizationPolicy:
		return g.authorization(m)
	case value.KindNode:
		m.Namespace, m.Name = "", oneOf(g, "n1", "n2")
		m.Labels = map[string]string{"topology.kubernetes.io/region": "r1", "topology.kubernetes.io/zone": oneOf(g,
			"z1", "z2")}
		return &corev1.Node{ObjectMeta: *m}
	case value.KindNamespace:
		m.Name, m.Namespace = m.Namespace, ""
		return &corev1.Namespace{ObjectMeta: *m}
	default:
		m.Namespace, m.Name = "istio-system", "istio"
		return fmt.Sprintf("outboundTrafficPolicy: {mode: %s}\n", oneOf(g, "ALLOW_ANY", "REGISTRY_ONLY"))
	}
}

func (g generator) peers(m *metav1.ObjectMeta) any {
	mode := func() *securityv1.PeerAuthentication_MutualTLS {
		return &securityv1.PeerAuthentication_MutualTLS{Mode: securityv1.PeerAuthentication_MutualTLS_Mode(g.IntN(4))}
	}
	p := &clientsec.PeerAuthentication{ObjectMeta: *m, Spec: securityv1.PeerAuthentication{Mtls: mode()}}
	if g.IntN(2) == 0 {
		p.Spec.Selector = &typev1beta1.WorkloadSelector{MatchLabels: map[string]string{"app": g.app()}}
		p.Spec.PortLevelMtls = map[uint32]*securityv1.PeerAuthentication_MutualTLS{oneOf[uint32](g, 80, 7000, 9000): mode()}
	}
	return p
}

func (g generator) authorization(m *metav1.ObjectMeta) any {
	p := &clientsec.AuthorizationPolicy{ObjectMeta: *m, Spec: securityv1.AuthorizationPolicy{
		Action: securityv1.AuthorizationPolicy_Action(g.IntN(3)),
		Rules: []*securityv1.Rule{{To: []*securityv1.Rule_To{{Operation: &securityv1.Operation{
			Ports: []string{oneOf(g, "80", "7000")}}}}}}}}
	if g.IntN(2) == 0 {
		p.Spec.Selector = &typev1beta1.WorkloadSelector{MatchLabels: map[string]string{"app": g.app()}}
	}
	return p
}

func (g generator) address() string { return fmt.Sprintf("10.10.0.%d", 1+g.IntN(6)) }

func (g generator) service(m *metav1.ObjectMeta) any {
	s := &corev1.Service{ObjectMeta: *m, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": m.Name},
		ClusterIP: fmt.Sprintf("10.96.0.%d", 1+g.IntN(3))}}
	switch g.IntN(8) {
	case 0:
		s.Spec.ClusterIP = corev1.ClusterIPNone
	case 1:
		s.Spec.Type, s.Spec.ExternalName, s.Spec.ClusterIP, s.Spec.Selector = corev1.ServiceTypeExternalName,
			"web.shop.svc.cluster.local", "", nil
	case 2:
		s.Annotations = map[string]string{"networking.istio.io/exportTo": oneOf(g, ".", "*", "shop")}
	case 3:
		s.Annotations = map[string]string{"unused": fmt.Sprint(g.IntN(10))}
	}
	for i, n := range []int32{80, 9000, 8080} {
		if i == 0 || g.IntN(2) == 0 {
			s.Spec.Ports = append(s.Spec.Ports,
				corev1.ServicePort{Name: oneOf(g, "http", "grpc", "tcp", "plain") + fmt.Sprint("-", n), Port: n,
					Protocol: corev1.ProtocolTCP})
		}
	}
	return s
}

func (g generator) pod(m *metav1.ObjectMeta) any {
	i := 1 + g.IntN(6)
	m.Name = fmt.Sprint("pod-", i)
	ip := fmt.Sprintf("10.10.0.%d", i)
	m.Labels = map[string]string{"app": g.app(), "version": oneOf(g, "v1", "v2")}
	if g.IntN(2) == 0 {
		m.Labels["security.istio.io/tlsMode"] = "istio"
	}
	return &corev1.Pod{ObjectMeta: *m, Spec: corev1.PodSpec{NodeName: oneOf(g, "n1", "n2", ""),
		ServiceAccountName: oneOf(g, "default", "web")},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}}}
}

func (g generator) slice(m *metav1.ObjectMeta) any {
	m.Labels = map[string]string{"kubernetes.io/service-name": m.Name}
	m.Name += oneOf(g, "-1", "-2")
	s := &discoveryv1.EndpointSlice{ObjectMeta: *m, AddressType: discoveryv1.AddressTypeIPv4}
	for _, n := range []int32{80, 9000, 8080} {
		for _, name := range []string{"http", "grpc", "tcp", "plain"} {
			name, n, tcp := fmt.Sprint(name, "-", n), n, corev1.ProtocolTCP
			s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: &name, Port: &n, Protocol: &tcp})
		}
	}
	for i := range 6 {
		if g.IntN(2) == 0 {
			ready := g.IntN(4) > 0
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.10.0.%d", i+1)},
				Conditions: discoveryv1.EndpointConditions{Ready: &ready},
				TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: m.Namespace,
					Name: fmt.Sprint("pod-", i+1)}})
		}
	}
	return s
}

func (g generator) serviceEntry(m *metav1.ObjectMeta) any {
	se := &networkingv1.ServiceEntry{ObjectMeta: *m, Spec: meshv1.ServiceEntry{
		Hosts:    []string{oneOf(g, "api.example.com", "web.example.com", "*.wild.example.com")},
		Location: meshv1.ServiceEntry_MESH_EXTERNAL,
		Ports: []*meshv1.ServicePort{{Number: oneOf[uint32](g, 80, 443, 9000), Name: "p",
			Protocol: oneOf(g, "HTTP", "TLS", "TCP")}},
	}}
	switch g.IntN(4) {
	case 0:
		se.Spec.Hosts = []string{"api.example.com"}
		se.Spec.Resolution = meshv1.ServiceEntry_DNS
	case 1:
		se.Spec.Resolution, se.Spec.Location = meshv1.ServiceEntry_STATIC, meshv1.ServiceEntry_MESH_INTERNAL
		se.Spec.WorkloadSelector = &meshv1.WorkloadSelector{Labels: map[string]string{"app": g.app()}}
	case 2:
		se.Spec.Resolution, se.Spec.Addresses = meshv1.ServiceEntry_STATIC, []string{oneOf(g, "10.96.0.1", "192.0.2.1")}
		se.Spec.Endpoints = []*meshv1.WorkloadEntry{{Address: g.address()}}
	}
	return se
}

func (g generator) virtualService(m *metav1.ObjectMeta) any {
	to := func() *meshv1.HTTPRouteDestination {
		d := &meshv1.HTTPRouteDestination{Destination: &meshv1.Destination{Host: oneOf(g, "web", "cart",
			"web.shop.svc.cluster.local", "api.example.com", "missing")}, Weight: 50}
		if g.IntN(3) == 0 {
			d.Destination.Subset = "v1"
		}
		if g.IntN(3) == 0 {
			d.Destination.Port = &meshv1.PortSelector{Number: 80}
		}
		return d
	}
	r := &meshv1.HTTPRoute{Route: []*meshv1.HTTPRouteDestination{to(), to()}}
	switch g.IntN(4) {
	case 0:
		r.Match = []*meshv1.HTTPMatchRequest{{
			Uri: &meshv1.StringMatch{MatchType: &meshv1.StringMatch_Prefix{Prefix: oneOf(g, "/a", "/b")}}}}
	case 1:
		r.Match = []*meshv1.HTTPMatchRequest{{SourceLabels: map[string]string{"app": g.app()}}}
	case 2:
		r.Match = []*meshv1.HTTPMatchRequest{{Gateways: []string{oneOf(g, "mesh", "front")}}}
	}
	vs := &networkingv1.VirtualService{ObjectMeta: *m, Spec: meshv1.VirtualService{
		Hosts: []string{oneOf(g, "web", "cart", "web.shop.svc.cluster.local", "web.example.com", "*.example.com",
			"*.shop.svc.cluster.local")}, Http: []*meshv1.HTTPRoute{r},
	}}
	switch g.IntN(5) {
	case 0:
		vs.Spec.Gateways = []string{"front", "mesh"}
	case 1:
		vs.Spec.Gateways = []string{"istio-system/front", "istio-system/back"}
		g.edgeHosts(&vs.Spec)
	}
	if g.IntN(4) == 0 {
		vs.Spec.ExportTo = []string{oneOf(g, ".", "shop")}
	}
	return vs
}

func (g generator) rule(m *metav1.ObjectMeta) any {
	d := &networkingv1.DestinationRule{ObjectMeta: *m,
		Spec: meshv1.DestinationRule{Host: oneOf(g, "web", "cart", "*.shop.svc.cluster.local", "api.example.com")}}
	if g.IntN(2) == 0 {
		d.Spec.Subsets = []*meshv1.Subset{{Name: oneOf(g, "v1", "v2"),
			Labels: map[string]string{"version": oneOf(g, "v1", "v2")}}}
	}
	if g.IntN(2) == 0 {
		d.Spec.TrafficPolicy = &meshv1.TrafficPolicy{
			OutlierDetection: &meshv1.OutlierDetection{MinHealthPercent: int32(g.IntN(3))}}
	}
	if g.IntN(4) == 0 {
		d.Spec.ExportTo = []string{"."}
	}
	return d
}
