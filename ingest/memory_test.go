package ingest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// fresh returns a text of its own, as a decoder makes it.
func fresh(format string, args ...any) string { return strings.Clone(fmt.Sprintf(format, args...)) }

// usualPod returns a pod with the labels of a real one, in memory of its own. i tells pods apart.
func usualPod(i int) *corev1.Pod {
	labels := map[string]string{}
	for k, v := range map[string]string{
		"app": "service-#####", "version": "v1", "pod-template-hash": "5c9f8d####",
		"service.istio.io/canonical-name":     "service-#####",
		"service.istio.io/canonical-revision": "v1", "security.istio.io/tlsMode": "istio", "team": "team-7",
	} {
		labels[strings.Clone(k)] = strings.NewReplacer("#####", fresh("%05d", i/3), "####",
			fresh("%04x", i/3)).Replace(v)
	}
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: fresh("team-%03d", i/3%100), Name: fresh("service-%05d-5c9f8d%04x-%05x", i/3, i/3, i),
		GenerateName: fresh("service-%05d-5c9f8d%04x-", i/3, i/3), Labels: labels,
		CreationTimestamp: metav1.Unix(1_700_000_000, 0),
		OwnerReferences: []metav1.OwnerReference{{Kind: fresh("ReplicaSet"),
			Name: fresh("service-%05d-5c9f8d%04x", i/3, i/3), Controller: &yes}},
	}}
	p.Spec.NodeName, p.Spec.ServiceAccountName = fresh("node-%02d", i%30), fresh("service-%05d", i/3)
	for _, port := range []string{"http", "http-envoy-prom"} {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: strings.Clone(port),
			Ports: []corev1.ContainerPort{{Name: strings.Clone(port), ContainerPort: 8080}}})
	}
	p.Status.Phase, p.Status.PodIP = corev1.PodRunning, usualAddress(i)
	p.Status.PodIPs = []corev1.PodIP{{IP: usualAddress(i)}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

func usualAddress(i int) string { return fresh("10.%d.%d.%d", 1+i/62500, i/250%250, 1+i%250) }

// usualSlice returns the slice of service s, whose endpoints are n pods of usualPod from 3×s on.
func usualSlice(s, n int) *discovery.EndpointSlice {
	port, number, ready := fresh("http"), int32(8080), true
	o := &discovery.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: fresh("team-%03d", s%100), Name: fresh("service-%05d-a1b2c", s),
		Labels: map[string]string{discovery.LabelServiceName: fresh("service-%05d", s)},
	}, AddressType: discovery.AddressTypeIPv4, Ports: []discovery.EndpointPort{{Name: &port, Port: &number}}}
	for i := 3 * s; i < 3*s+n; i++ {
		node := fresh("node-%02d", i%30)
		o.Endpoints = append(o.Endpoints, discovery.Endpoint{
			Addresses: []string{usualAddress(i)}, Conditions: discovery.EndpointConditions{Ready: &ready,
				Serving: &ready}, NodeName: &node,
			TargetRef: &corev1.ObjectReference{Kind: fresh("Pod"), Namespace: o.Namespace,
				Name: fresh("service-%05d-5c9f8d%04x-%05x", i/3, i/3, i), UID: "7f1c2a52-0a54-4a9c-9e2f-3f1e2b6f9a10"},
		})
	}
	return o
}

func usualService(s int) *corev1.Service {
	o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: fresh("team-%03d", s%100),
		Name: fresh("service-%05d", s)}}
	o.Spec.ClusterIP, o.Spec.Selector = fresh("172.16.%d.%d", s/250, s%250),
		map[string]string{"app": fresh("service-%05d", s)}
	o.Spec.Ports = []corev1.ServicePort{{Name: fresh("http"), Port: 80}}
	return o
}

func event(kind value.Kind, o metav1.Object) Event {
	return Event{Source: "kube", Key: value.ObjectKey{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()},
		Object: o}
}

// nothing is a Builder that keeps nothing.
type nothing struct{}

func (nothing) Apply(*snapshot.Delta) {}

func live() uint64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkMemory reports what the Store keeps: of a pod alone, and of a pod with its endpoint and a third of a
// service.
func BenchmarkMemory(b *testing.B) {
	const services = 10_000
	for _, name := range []string{"pods", "mesh"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				before := live()
				s := NewStore(nothing{}, Settings{Log: testLog(nil)}, "kube")
				for i := range services {
					events := []Event{event(value.KindPod, usualPod(3*i)), event(value.KindPod, usualPod(3*i+1)),
						event(value.KindPod, usualPod(3*i+2))}
					if name == "mesh" {
						events = append(events, event(value.KindService, usualService(i)),
							event(value.KindEndpointSlice, usualSlice(i, 3)))
					}
					s.Apply(events)
				}
				s.Synced("kube")
				b.ReportMetric(float64(live()-before)/(3*services), "B/pod")
				runtime.KeepAlive(s)
			}
		})
	}
}
