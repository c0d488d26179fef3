package ingest

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// drain is a Builder that keeps nothing.
type drain struct{ last *snapshot.Delta }

func (d *drain) Apply(b *snapshot.Delta) { d.last = b }

func largeAddress(s, i, j int) string { return fmt.Sprintf("%d.%d.%d.%d", 11+s/250, s%250, i, j) }

// largeSlice returns slice i of Service s, whose endpoints are the pods of buildLarge; one of them is ready or not.
func largeSlice(s, i, n int, ready bool) Event {
	name, port := "http", int32(80)
	out := &discovery.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("s%d-%d", s, i),
			Labels: map[string]string{discovery.LabelServiceName: fmt.Sprintf("s%d", s)}},
		AddressType: discovery.AddressTypeIPv4, Ports: []discovery.EndpointPort{{Name: &name, Port: &port}},
	}
	for j := range n {
		is := j != 0 || ready
		out.Endpoints = append(out.Endpoints, discovery.Endpoint{
			Addresses: []string{largeAddress(s, i, j)}, Conditions: discovery.EndpointConditions{Ready: &is},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "shop",
				Name: fmt.Sprintf("p-%d-%d-%d", s, i, j)},
		})
	}
	return Event{Source: "kube", Key: value.ObjectKey{Kind: value.KindEndpointSlice, Namespace: "shop", Name: out.Name},
		Object: out}
}

func largePod(s, i, j int, version string) Event {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("p-%d-%d-%d", s, i, j),
			Labels: map[string]string{"app": fmt.Sprintf("s%d", s), "version": version}},
		Status: corev1.PodStatus{PodIP: largeAddress(s, i, j),
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: "True"}}},
	}
	return Event{Source: "kube", Key: value.ObjectKey{Kind: value.KindPod, Namespace: "shop", Name: p.Name}, Object: p}
}

// buildLarge returns services of slices of n endpoints each.
func buildLarge(services, slices, n int) (*Store, *drain) {
	d := &drain{}
	s := NewStore(d, Settings{Log: testLog(nil)}, "kube")
	var events []Event
	for svc := range services {
		o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("s%d", svc)}}
		o.Spec.ClusterIP, o.Spec.Ports = fmt.Sprintf("10.96.%d.%d", svc/250, svc%250),
			[]corev1.ServicePort{{Name: "http", Port: 80}}
		o.Spec.Selector = map[string]string{"app": o.Name}
		events = append(events, Event{Source: "kube", Key: value.ObjectKey{Kind: value.KindService, Namespace: "shop",
			Name: o.Name}, Object: o})
		for i := range slices {
			events = append(events, largeSlice(svc, i, n, true))
			for j := range n {
				events = append(events, largePod(svc, i, j, "v1"))
			}
		}
	}
	s.Apply(events)
	s.Synced("kube")
	return s, d
}

// BenchmarkEndpoint changes the readiness of one endpoint. Its cost is that of the endpoint's service alone.
func BenchmarkEndpoint(b *testing.B) {
	for _, size := range []struct{ services, slices, n int }{{1, 1, 2}, {1000, 1, 2}, {1, 10, 100}, {1, 100, 100}} {
		b.Run(fmt.Sprintf("services=%d/endpoints=%d", size.services, size.slices*size.n), func(b *testing.B) {
			s, _ := buildLarge(size.services, size.slices, size.n)
			events := []Event{largeSlice(0, 0, size.n, false), largeSlice(0, 0, size.n, true)}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.Apply(events[i%2 : i%2+1])
			}
		})
	}
}

// BenchmarkPod changes a label of one pod.
func BenchmarkPod(b *testing.B) {
	for _, services := range []int{1, 1000} {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			s, _ := buildLarge(services, 1, 2)
			events := []Event{largePod(0, 0, 0, "v2"), largePod(0, 0, 0, "v1")}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.Apply(events[i%2 : i%2+1])
			}
		})
	}
}

// BenchmarkStart loads a whole mesh.
func BenchmarkStart(b *testing.B) {
	for _, services := range []int{1000, 4000} {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				buildLarge(services, 1, 2)
			}
		})
	}
}

// TestMovedEndpoints cuts the slices of a Service anew without any change of an endpoint: nobody is told, and what the
// slices hold are the endpoints that everybody has, so that the next change is compared by pointers again.
func TestMovedEndpoints(t *testing.T) {
	s, d := buildLarge(1, 3, 4)
	host := value.ServiceKey{Host: "s0.shop.svc.cluster.local", Namespace: "shop"}
	before := d.last.Endpoints[host].New.All()
	d.last = nil
	var events []Event
	whole := largeSlice(0, 0, 4, true).Object.(*discovery.EndpointSlice).DeepCopy()
	for i := range 3 {
		e := largeSlice(0, i, 4, true)
		if i > 0 {
			whole.Endpoints = append(whole.Endpoints, e.Object.(*discovery.EndpointSlice).Endpoints...)
		}
		e.Object = nil
		events = append(events, e)
	}
	whole.Name = "s0-all"
	key := value.ObjectKey{Kind: value.KindEndpointSlice, Namespace: "shop", Name: whole.Name}
	s.Apply(append(events, Event{Source: "kube", Key: key, Object: whole}))
	if d.last != nil && len(d.last.Endpoints) > 0 {
		t.Errorf("endpoints that moved from slice to slice are told as a change: %v", d.last.Endpoints)
	}
	if got := s.joiner.joints[objectName{"shop", "s0"}].list; len(before) == 0 || !slices.Equal(got, before) {
		t.Errorf("the slices hold copies of the %d endpoints that everybody has", len(before))
	}
}
