package mesh

import (
	"fmt"

	meshv1 "istio.io/api/networking/v1alpha3"
	networkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Objects are all objects of the mesh, each with its kind.
func (m *Mesh) Objects() []metav1.Object {
	var out []metav1.Object
	for i := range m.Namespaces {
		ns := m.namespace(i)
		out = append(out, &corev1.Namespace{TypeMeta: core("Namespace"), ObjectMeta: metav1.ObjectMeta{Name: ns}})
	}
	for i := range nodes {
		out = append(out, &corev1.Node{TypeMeta: core("Node"), ObjectMeta: metav1.ObjectMeta{Name: m.node(i),
			Labels: map[string]string{"topology.kubernetes.io/region": "region-1", "topology.kubernetes.io/zone": m.zone(i)}}})
	}
	for s := range m.Services {
		out = append(out, m.Service(s), m.Slice(s, true))
		if m.routed(s) {
			out = append(out, m.Route(s, 0))
		}
		if m.ruled(s) {
			out = append(out, m.rule(s))
		}
	}
	for i := range m.Workloads() {
		out = append(out, m.Pod(i))
	}
	return out
}

func core(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }

func networking(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: "networking.istio.io/v1", Kind: kind}
}

func (m *Mesh) meta(s int, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.namespace(s), Name: name, CreationTimestamp: metav1.Unix(1_700_000_000+int64(s), 0)}
}

// Ports of the workloads.
const (
	httpPort = 8080
	tcpPort  = 5432
)

// Service is service s.
func (m *Mesh) Service(s int) *corev1.Service {
	o := &corev1.Service{TypeMeta: core("Service"), ObjectMeta: m.meta(s, m.service(s))}
	o.Spec.ClusterIP = fmt.Sprintf("172.%d.%d.%d", 16+s/(250*250), s/250%250, 1+s%250)
	o.Spec.Selector = map[string]string{"app": m.service(s)}
	o.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(httpPort)}}
	if m.tcp(s) {
		o.Spec.Ports = append(o.Spec.Ports, corev1.ServicePort{Name: "tcp", Port: tcpPort, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(tcpPort)})
	}
	return o
}

// Pod is the pod of workload i.
func (m *Mesh) Pod(i int) *corev1.Pod {
	s, _ := m.place(i)
	o := &corev1.Pod{TypeMeta: core("Pod"), ObjectMeta: m.meta(s, m.name(i))}
	o.Labels = m.labels(i)
	o.Spec.NodeName, o.Spec.ServiceAccountName = m.node(i), m.service(s)
	o.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: m.address(i), PodIPs: []corev1.PodIP{{IP: m.address(i)}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	return o
}

// Slice is the EndpointSlice of service s, whose last pod is ready or not.
func (m *Mesh) Slice(s int, ready bool) *discoveryv1.EndpointSlice {
	o := &discoveryv1.EndpointSlice{TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}, ObjectMeta: m.meta(s, m.service(s)+"-a1b2c"), AddressType: discoveryv1.AddressTypeIPv4}
	o.Labels = map[string]string{discoveryv1.LabelServiceName: m.service(s)}
	port := func(name string, number int32) {
		protocol := corev1.ProtocolTCP
		o.Ports = append(o.Ports, discoveryv1.EndpointPort{Name: &name, Port: &number, Protocol: &protocol})
	}
	port("http", httpPort)
	if m.tcp(s) {
		port("tcp", tcpPort)
	}
	for pod := range m.Pods {
		i := pod*m.Services + s
		is := ready || pod < m.Pods-1
		node := m.node(i)
		o.Endpoints = append(o.Endpoints, discoveryv1.Endpoint{Addresses: []string{m.address(i)}, Conditions: discoveryv1.EndpointConditions{Ready: &is}, NodeName: &node,
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: o.Namespace, Name: m.name(i)}})
	}
	return o
}

// Route is the VirtualService of service s in its n-th edition: a path that goes to the service of that name, and weights.
func (m *Mesh) Route(s, n int) *networkingv1.VirtualService {
	o := &networkingv1.VirtualService{TypeMeta: networking("VirtualService"), ObjectMeta: m.meta(s, m.service(s))}
	to := func(version string, weight int) *meshv1.HTTPRouteDestination {
		d := &meshv1.HTTPRouteDestination{Destination: &meshv1.Destination{Host: m.Host(s), Port: &meshv1.PortSelector{Number: 80}}, Weight: int32(weight)}
		if m.ruled(s) {
			d.Destination.Subset = version
		}
		return d
	}
	first := 1 + n%99
	o.Spec = meshv1.VirtualService{Hosts: []string{m.Host(s)}, Http: []*meshv1.HTTPRoute{
		{Match: []*meshv1.HTTPMatchRequest{{Uri: &meshv1.StringMatch{MatchType: &meshv1.StringMatch_Prefix{Prefix: "/api/"}}}},
			Route: []*meshv1.HTTPRouteDestination{to("v1", 100)}, Timeout: durationpb.New(5e9), Retries: &meshv1.HTTPRetry{Attempts: 3}},
		{Route: []*meshv1.HTTPRouteDestination{to("v1", first), to("v2", 100-first)}},
	}}
	return o
}

func (m *Mesh) rule(s int) *networkingv1.DestinationRule {
	o := &networkingv1.DestinationRule{TypeMeta: networking("DestinationRule"), ObjectMeta: m.meta(s, m.service(s))}
	o.Spec = meshv1.DestinationRule{Host: m.Host(s), Subsets: []*meshv1.Subset{
		{Name: "v1", Labels: map[string]string{"version": "v1"}}, {Name: "v2", Labels: map[string]string{"version": "v2"}},
	}, TrafficPolicy: &meshv1.TrafficPolicy{ConnectionPool: &meshv1.ConnectionPoolSettings{Tcp: &meshv1.ConnectionPoolSettings_TCPSettings{MaxConnections: 100}}}}
	if m.chance(outlierDetection, s, m.OutlierDetection) {
		o.Spec.TrafficPolicy.OutlierDetection = &meshv1.OutlierDetection{Consecutive_5XxErrors: wrapperspb.UInt32(5)}
	}
	return o
}
