package mesh

import (
	meshv1 "istio.io/api/networking/v1alpha3"
	networkingv1 "istio.io/client-go/pkg/apis/networking/v1"
)

// sidecarObjects returns the Sidecars: of namespaces, then of workloads.
func (m *Mesh) sidecarObjects(yield func(Object) bool) bool {
	for i := range m.Sidecars.Namespaces {
		if !yield(m.sidecar(i, m.namespace(i), "default")) {
			return false
		}
	}
	for i := range m.Sidecars.Workloads {
		if !yield(m.workloadSidecar(i)) {
			return false
		}
	}
	return true
}

// sidecar lets in what is in the own namespace, and services out of the others, which ones the seed and i say.
func (m *Mesh) sidecar(i int, namespace, name string) *networkingv1.Sidecar {
	o := &networkingv1.Sidecar{TypeMeta: networking("Sidecar"), ObjectMeta: meta(namespace, name, m.created(i))}
	hosts := []string{"./*", "istio-system/*"}
	r := m.random(sidecarImports, i)
	for range m.Sidecars.Imports {
		s := r.IntN(m.services())
		hosts = append(hosts, m.namespace(s)+"/"+m.Host(s))
	}
	o.Spec = meshv1.Sidecar{Egress: []*meshv1.IstioEgressListener{{Hosts: hosts}}}
	return o
}

// workloadSidecar returns the Sidecar of the i-th deployment: of one version of one service. It lets in single services
// alone.
func (m *Mesh) workloadSidecar(i int) *networkingv1.Sidecar {
	s, v := i%m.services(), version(i/m.services())
	o := m.sidecar(m.Namespaces+i, m.namespace(s), m.service(s)+"-"+v)
	hosts := o.Spec.Egress[0].Hosts
	hosts[0] = "./" + m.Host(s)
	o.Spec.WorkloadSelector = &meshv1.WorkloadSelector{Labels: map[string]string{"app": m.service(s), "version": v}}
	return o
}
