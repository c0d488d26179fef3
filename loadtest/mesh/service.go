package mesh

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Ports of the workloads.
const (
	httpPort = 8080
	tcpPort  = 5432
	grpcPort = 7070
)

// ports returns those of service s.
func (m *Mesh) ports(s int) []corev1.ServicePort {
	out := []corev1.ServicePort{servicePort("http", 80, httpPort)}
	if m.tcp(s) {
		out = append(out, servicePort("tcp", tcpPort, tcpPort))
	}
	if m.grpc(s) {
		out = append(out, servicePort("grpc", grpcPort, grpcPort))
	}
	return out
}

func servicePort(name string, port, target int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: port, Protocol: corev1.ProtocolTCP,
		TargetPort: intstr.FromInt32(target)}
}

// serviceObject returns service s.
func (m *Mesh) serviceObject(s int) *corev1.Service {
	o := &corev1.Service{TypeMeta: core("Service"), ObjectMeta: meta(m.namespace(s), m.service(s), m.created(s))}
	o.Spec.ClusterIP = clusterIP(s)
	if m.headless(s) {
		o.Spec.ClusterIP = corev1.ClusterIPNone
	}
	o.Spec.Selector = map[string]string{"app": m.service(s)}
	o.Spec.Ports = m.ports(s)
	return o
}

// clusterIP returns the i-th address of services.
func clusterIP(i int) string { return fmt.Sprintf("172.%d.%d.%d", 16+i/(250*250), i/250%250, 1+i%250) }

// maxClusterIPs is how many there are: 172.16.0.0/12.
const maxClusterIPs = 16 * 250 * 250

// newSlice returns an EndpointSlice without endpoints.
func newSlice(o metav1.ObjectMeta, service string) *discoveryv1.EndpointSlice {
	o.Labels = map[string]string{discoveryv1.LabelServiceName: service}
	return &discoveryv1.EndpointSlice{TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1",
		Kind: "EndpointSlice"},
		ObjectMeta: o, AddressType: discoveryv1.AddressTypeIPv4}
}
