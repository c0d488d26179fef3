package mesh

import (
	"fmt"
	"math/rand/v2"

	meshv1 "istio.io/api/networking/v1alpha3"
	networkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// instance is a pod of a service: the one that the mesh begins with, or one that an edit put in its place.
type instance struct {
	pod    int  // which of the service's pods
	number int  // the edit's; 0 is none
	marked bool // the address says the number
}

// instances returns the pods of service s before any edit.
func (m *Mesh) instances(s int) []instance {
	out := make([]instance, m.replicas(s))
	for i := range out {
		out[i].pod = i
	}
	return out
}

// workload is what is known of a pod, whatever kind of object tells it.
type workload struct {
	namespace, app, version, name, address string

	hash   string // of the pod's template
	number int    // decides the node
	router bool   // a gateway: it has no sidecar, it is one
}

// hash returns the hash of the template of pod i, as an edit left it.
func (m *Mesh) hash(i, edit int) string {
	return fmt.Sprintf("%010x", rand.New(rand.NewPCG(m.Seed, uint64(edit)<<40|templateHash<<32|uint64(i))).Uint64()>>24)
}

// podName returns the name that a Deployment gives a pod.
func (w *workload) podName() string {
	return fmt.Sprintf("%s-%s-%04x", w.deployment(), w.hash, w.number&0xffff)
}

// deployment returns what runs the workload.
func (w *workload) deployment() string { return w.app + "-" + w.version }

// at returns the workload that a pod of service s is.
func (m *Mesh) at(s int, p instance) workload {
	i := m.workload(s, p.pod)
	w := workload{namespace: m.namespace(s), app: m.service(s), version: version(p.pod), address: address(i),
		hash: m.hash(i, p.number), number: i}
	if p.marked {
		w.address = Address(p.number)
	}
	w.name = w.podName()
	return w
}

// labels returns the labels of a workload.
func (w *workload) labels() map[string]string {
	labels := map[string]string{
		"app": w.app, "version": w.version, "pod-template-hash": w.hash, "workload": w.name,
		"service.istio.io/canonical-name": w.deployment(), "service.istio.io/canonical-revision": w.version,
		"security.istio.io/tlsMode": "istio", "sidecar.istio.io/inject": "true", "team": w.namespace,
	}
	if w.router {
		labels["istio"], labels["sidecar.istio.io/inject"] = w.app, "false"
	}
	return labels
}

// Pod returns the pod of workload i before any edit.
func (m *Mesh) Pod(i int) *corev1.Pod {
	s, pod := m.servicePod(i)
	return m.pod(s, instance{pod: pod})
}

func (m *Mesh) pod(s int, p instance) *corev1.Pod {
	w := m.at(s, p)
	return w.pod(m.created(s))
}

func (w *workload) pod(created int64) *corev1.Pod {
	o := &corev1.Pod{TypeMeta: core("Pod"), ObjectMeta: meta(w.namespace, w.name, created)}
	o.Labels = w.labels()
	o.Spec.NodeName, o.Spec.ServiceAccountName = node(w.number), w.app
	o.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: w.address, PodIPs: []corev1.PodIP{{IP: w.address}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	return o
}

// entry returns the workload in a mesh without Kubernetes.
func (w *workload) entry(created int64) *networkingv1.WorkloadEntry {
	o := &networkingv1.WorkloadEntry{TypeMeta: networking("WorkloadEntry"),
		ObjectMeta: meta(w.namespace, w.name, created)}
	o.Labels = w.labels()
	o.Spec = meshv1.WorkloadEntry{Address: w.address, Labels: w.labels(), ServiceAccount: w.app,
		Locality: "region-1/" + zone(w.number)}
	return o
}

// sliceSize is how many endpoints Kubernetes puts into an EndpointSlice.
const sliceSize = 100

// chunks returns how many EndpointSlices n endpoints take; a service without endpoints has one too.
func chunks(n int) int { return max(1, (n+sliceSize-1)/sliceSize) }

// Slice returns the EndpointSlice of a service s of at most 100 pods, of which the last is ready or not.
func (m *Mesh) Slice(s int, ready bool) *discoveryv1.EndpointSlice {
	o := m.Slices(s)[0]
	o.Endpoints[len(o.Endpoints)-1].Conditions.Ready = &ready
	return o
}

// Slices returns the EndpointSlices of service s before any edit, as Kubernetes cuts them.
func (m *Mesh) Slices(s int) []*discoveryv1.EndpointSlice {
	pods := m.instances(s)
	out := make([]*discoveryv1.EndpointSlice, chunks(len(pods)))
	for chunk := range out {
		out[chunk] = m.slice(s, chunk, pods)
	}
	return out
}

// slice returns the chunk-th EndpointSlice of service s with those pods.
func (m *Mesh) slice(s, chunk int, pods []instance) *discoveryv1.EndpointSlice {
	o := m.emptySlice(s, chunk)
	for _, p := range pods[chunk*sliceSize : min((chunk+1)*sliceSize, len(pods))] {
		o.Endpoints = append(o.Endpoints, m.podEndpoint(s, p))
	}
	return o
}

func (m *Mesh) emptySlice(s, chunk int) *discoveryv1.EndpointSlice {
	o := newSlice(meta(m.namespace(s), fmt.Sprintf("%s-%05x", m.service(s), 0xa1b2c+chunk), m.created(s)), m.service(s))
	for _, p := range m.ports(s) {
		o.Ports = append(o.Ports, discoveryv1.EndpointPort{Name: &p.Name, Port: &p.TargetPort.IntVal,
			Protocol: &p.Protocol})
	}
	return o
}

func (m *Mesh) podEndpoint(s int, p instance) discoveryv1.Endpoint {
	w := m.at(s, p)
	return w.endpoint()
}

func (w *workload) endpoint() discoveryv1.Endpoint {
	out, name := endpoint(w.address), node(w.number)
	out.NodeName = &name
	out.TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: w.namespace, Name: w.name}
	return out
}

// endpoint returns a ready endpoint without a pod.
func endpoint(address string) discoveryv1.Endpoint {
	ready := true
	return discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}
}
