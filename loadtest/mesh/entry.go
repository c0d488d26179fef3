package mesh

import (
	"fmt"

	meshv1 "istio.io/api/networking/v1alpha3"
	networkingv1 "istio.io/client-go/pkg/apis/networking/v1"
)

// serviceEntry returns service s in a mesh without Kubernetes.
func (m *Mesh) serviceEntry(s int) *networkingv1.ServiceEntry {
	o := &networkingv1.ServiceEntry{TypeMeta: networking("ServiceEntry"), ObjectMeta: meta(m.namespace(s), m.service(s),
		m.created(s))}
	o.Spec = meshv1.ServiceEntry{Hosts: []string{m.Host(s)}, Location: meshv1.ServiceEntry_MESH_INTERNAL,
		Resolution:       meshv1.ServiceEntry_STATIC,
		WorkloadSelector: &meshv1.WorkloadSelector{Labels: map[string]string{"app": m.service(s)}}}
	if !m.headless(s) {
		o.Spec.Addresses = []string{clusterIP(s)}
	}
	for _, p := range m.ports(s) {
		protocol := map[string]string{"http": "HTTP", "tcp": "TCP", "grpc": "GRPC"}[p.Name]
		o.Spec.Ports = append(o.Spec.Ports, &meshv1.ServicePort{Number: uint32(p.Port), Name: p.Name,
			Protocol: protocol, TargetPort: uint32(p.TargetPort.IntVal)})
	}
	return o
}

// externalObjects returns the services outside the mesh.
func (m *Mesh) externalObjects(yield func(Object) bool) bool {
	e := m.ServiceEntries
	for i := range e.DNS + e.Static + e.Workloads {
		if !yield(m.external(i)) {
			return false
		}
		if i < e.DNS+e.Static {
			continue
		}
		for n := range e.Endpoints {
			if !yield(m.externalWorkload(i, n)) {
				return false
			}
		}
	}
	return true
}

// external returns the i-th service outside the mesh: those that are found by name come first, then those with
// endpoints, then those with workloads.
func (m *Mesh) external(i int) *networkingv1.ServiceEntry {
	name := fmt.Sprintf("external-%05d", i)
	o := &networkingv1.ServiceEntry{TypeMeta: networking("ServiceEntry"),
		ObjectMeta: meta(m.namespace(i), name, m.created(i))}
	o.Spec = meshv1.ServiceEntry{Hosts: []string{name + ".example.org"}, Location: meshv1.ServiceEntry_MESH_EXTERNAL,
		Resolution: meshv1.ServiceEntry_STATIC,
		Ports: []*meshv1.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"},
			{Number: 443, Name: "tls", Protocol: "TLS"}}}
	switch e := m.ServiceEntries; {
	case i < e.DNS:
		o.Spec.Resolution = meshv1.ServiceEntry_DNS
		return o
	case i < e.DNS+e.Static:
		for n := range e.Endpoints {
			o.Spec.Endpoints = append(o.Spec.Endpoints, &meshv1.WorkloadEntry{Address: m.externalAddress(i, n)})
		}
	default:
		o.Spec.WorkloadSelector = &meshv1.WorkloadSelector{Labels: map[string]string{"app": name}}
	}
	o.Spec.Addresses = []string{clusterIP(m.services() + m.Gateway.Deployments + i)}
	return o
}

// externalWorkload returns the n-th workload of the i-th service outside the mesh.
func (m *Mesh) externalWorkload(i, n int) *networkingv1.WorkloadEntry {
	app := fmt.Sprintf("external-%05d", i)
	o := &networkingv1.WorkloadEntry{TypeMeta: networking("WorkloadEntry"),
		ObjectMeta: meta(m.namespace(i), fmt.Sprintf("%s-%d", app, n), m.created(i))}
	o.Spec = meshv1.WorkloadEntry{Address: m.externalAddress(i, n), Labels: map[string]string{"app": app},
		ServiceAccount: app}
	return o
}

// maxExternal is how many addresses there are outside the mesh.
const maxExternal = 10 * 250 * 250 * 250

// externalAddress returns an address out of those that no network has: 240.0.0.0/4.
func (m *Mesh) externalAddress(i, n int) string {
	k := (i-m.ServiceEntries.DNS)*m.ServiceEntries.Endpoints + n
	return fmt.Sprintf("%d.%d.%d.%d", 240+k/(250*250*250), k/(250*250)%250, k/250%250, 1+k%250)
}

// markedEntry stands for an endpoint of service s whose address says n, in a mesh without Kubernetes.
func (m *Mesh) markedEntry(s, n int) *networkingv1.WorkloadEntry {
	w := m.at(s, instance{number: n, marked: true})
	w.name = fmt.Sprintf("%s-change-%05d", m.service(s), n)
	return w.entry(m.created(s))
}
