package mesh

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	meshv1 "istio.io/api/networking/v1alpha3"
	networkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// gatewayNamespace is where gateways run.
const gatewayNamespace = "gateways"

// Gateways returns how many gateways there are: the pods of all their deployments.
func (m *Mesh) Gateways() int { return m.Gateway.Deployments * m.Gateway.Pods }

// GatewayNode returns what gateway i says of itself.
func (m *Mesh) GatewayNode(i int) *corev3.Node {
	w := m.gatewayWorkload(i)
	return w.node("router", nil)
}

// GatewayAccount returns the namespace and the service account of gateway i.
func (m *Mesh) GatewayAccount(i int) (namespace, name string) {
	w := m.gatewayWorkload(i)
	return w.namespace, w.app
}

func gatewayName(deployment int) string { return fmt.Sprintf("gateway-%02d", deployment) }

// gatewayNames returns all Gateways, as VirtualServices name them.
func (m *Mesh) gatewayNames() (out []string) {
	for d := range m.Gateway.Deployments {
		out = append(out, gatewayNamespace+"/"+gatewayName(d))
	}
	return out
}

// gatewayWorkload returns the i-th gateway. Consecutive ones are of different deployments.
func (m *Mesh) gatewayWorkload(i int) workload {
	n := m.Workloads() + i
	w := workload{namespace: gatewayNamespace, app: gatewayName(i % m.Gateway.Deployments), version: version(0),
		address: address(n), hash: m.hash(n, 0), number: n, router: true}
	w.name = w.podName()
	return w
}

// gatewayObjects returns the deployments of gateways with their Service and Gateway, and the VirtualServices.
func (m *Mesh) gatewayObjects(yield func(Object) bool) bool {
	for d := range m.Gateway.Deployments {
		slices := m.gatewaySlices(d)
		if !yield(m.gatewayService(d)) || !yield(m.gateway(d)) {
			return false
		}
		for _, o := range slices {
			if !yield(o) {
				return false
			}
		}
	}
	for i := range m.Gateways() {
		w := m.gatewayWorkload(i)
		if !yield(w.pod(m.created(m.services()))) {
			return false
		}
	}
	for h := range m.Gateway.Hosts {
		if !yield(m.gatewayRoutes(h)) {
			return false
		}
	}
	return true
}

func (m *Mesh) gatewayService(d int) *corev1.Service {
	o := &corev1.Service{TypeMeta: core("Service"), ObjectMeta: meta(gatewayNamespace, gatewayName(d),
		m.created(m.services()))}
	o.Spec.ClusterIP = clusterIP(m.services() + d)
	o.Spec.Selector = map[string]string{"app": gatewayName(d)}
	o.Spec.Ports = []corev1.ServicePort{servicePort("http2", 80, httpPort)}
	return o
}

func (m *Mesh) gatewaySlices(d int) (out []*discoveryv1.EndpointSlice) {
	for pod := range m.Gateway.Pods {
		if pod%sliceSize == 0 {
			name := fmt.Sprintf("%s-%05x", gatewayName(d), 0xa1b2c+len(out))
			o := newSlice(meta(gatewayNamespace, name, m.created(m.services())), gatewayName(d))
			port := servicePort("http2", 80, httpPort)
			o.Ports = []discoveryv1.EndpointPort{{Name: &port.Name, Port: &port.TargetPort.IntVal,
				Protocol: &port.Protocol}}
			out = append(out, o)
		}
		last := out[len(out)-1]
		w := m.gatewayWorkload(pod*m.Gateway.Deployments + d)
		last.Endpoints = append(last.Endpoints, w.endpoint())
	}
	return out
}

func (m *Mesh) gateway(d int) *networkingv1.Gateway {
	o := &networkingv1.Gateway{TypeMeta: networking("Gateway"), ObjectMeta: meta(gatewayNamespace, gatewayName(d),
		m.created(m.services()))}
	o.Spec = meshv1.Gateway{Selector: map[string]string{"istio": gatewayName(d)}, Servers: []*meshv1.Server{
		{Port: &meshv1.Port{Number: 80, Name: "http", Protocol: "HTTP"}, Hosts: []string{"*.example.com"}},
	}}
	return o
}

// gatewayRoutes returns the VirtualService of the h-th host: its part of the routes, each to some service.
func (m *Mesh) gatewayRoutes(h int) *networkingv1.VirtualService {
	r := m.random(gatewayRoutes, h)
	name := fmt.Sprintf("host-%05d", h)
	o := &networkingv1.VirtualService{TypeMeta: networking("VirtualService"),
		ObjectMeta: meta(m.namespace(h), name, m.created(h))}
	o.Spec = meshv1.VirtualService{Hosts: []string{name + ".example.com"}, Gateways: m.gatewayNames()}
	for i := h; i < m.Gateway.Routes; i += m.Gateway.Hosts {
		o.Spec.Http = append(o.Spec.Http,
			prefixed(fmt.Sprintf("/api/%05d/", i),
				&meshv1.HTTPRouteDestination{Destination: m.destination(r.IntN(m.services()))}))
	}
	return o
}
