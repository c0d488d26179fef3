package mesh

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is a Kubernetes or Istio object, with its kind.
type Object interface {
	metav1.Object
	runtime.Object
}

// Objects yields all objects of the mesh: those without a namespace first, then services with their endpoints, routes
// and rules, then pods, then all others.
func (m *Mesh) Objects() iter.Seq[Object] {
	return func(yield func(Object) bool) {
		_ = m.clusterObjects(yield) && m.serviceObjects(yield) && m.workloadObjects(yield) && m.gatewayObjects(yield) &&
			m.sidecarObjects(yield) && m.externalObjects(yield)
	}
}

// clusterObjects returns the namespaces and nodes.
func (m *Mesh) clusterObjects(yield func(Object) bool) bool {
	for i := range m.Namespaces {
		if !yield(namespace(m.namespace(i))) {
			return false
		}
	}
	if m.Gateway.Deployments > 0 && !yield(namespace(gatewayNamespace)) {
		return false
	}
	for i := range nodes {
		o := &corev1.Node{TypeMeta: core("Node"), ObjectMeta: metav1.ObjectMeta{Name: node(i),
			Labels: map[string]string{"topology.kubernetes.io/region": "region-1",
				"topology.kubernetes.io/zone": zone(i)}}}
		if !yield(o) {
			return false
		}
	}
	return true
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{TypeMeta: core("Namespace"), ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (m *Mesh) serviceObjects(yield func(Object) bool) bool {
	for s := range m.services() {
		if m.Entries {
			if !yield(m.serviceEntry(s)) {
				return false
			}
		} else if !yield(m.serviceObject(s)) || !m.sliceObjects(s, yield) {
			return false
		}
		if m.routed(s) && !yield(m.Route(s, 0)) || m.ruled(s) && !yield(m.rule(s)) {
			return false
		}
	}
	return true
}

func (m *Mesh) sliceObjects(s int, yield func(Object) bool) bool {
	for _, o := range m.Slices(s) {
		if !yield(o) {
			return false
		}
	}
	return true
}

func (m *Mesh) workloadObjects(yield func(Object) bool) bool {
	for i := range m.Workloads() {
		s, pod := m.servicePod(i)
		if !yield(m.workloadObject(s, instance{pod: pod})) {
			return false
		}
	}
	return true
}

// workloadObject returns a pod, or what stands for it in a mesh without Kubernetes.
func (m *Mesh) workloadObject(s int, p instance) Object {
	if m.Entries {
		w := m.at(s, p)
		return w.entry(m.created(s))
	}
	return m.pod(s, p)
}

func core(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }

func networking(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: "networking.istio.io/v1", Kind: kind}
}

// created returns the moment, in seconds, in which everything of service s was made.
func (m *Mesh) created(s int) int64 { return 1_700_000_000 + int64(s) }

func meta(namespace, name string, created int64) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.Unix(created, 0)}
}
