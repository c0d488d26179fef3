package ingest

import (
	"fmt"
	"testing"

	networking "istio.io/api/networking/v1alpha3"
	clientnet "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// BenchmarkObject brings one object into force, in one of two versions in turn: validated, made into values, compared
// with its predecessor, and handed to the Builder. "same" sends an object of which only unused fields changed.
func BenchmarkObject(b *testing.B) {
	for _, c := range []struct {
		name string
		kind value.Kind
		make func(version int) metav1.Object
	}{
		{"pod", value.KindPod, func(v int) metav1.Object {
			p := usualPod(0)
			p.Labels["version"] = fmt.Sprint("v",
				v)
			return p
		}},
		{"pod/same", value.KindPod,
			func(v int) metav1.Object { p := usualPod(0); p.ResourceVersion = fmt.Sprint(v); return p }},
		{"service", value.KindService,
			func(v int) metav1.Object { s := usualService(0); s.Spec.Ports[0].Port = int32(80 + v); return s }},
		{"slice/endpoints=1", value.KindEndpointSlice, sliceOf(1)},
		{"slice/endpoints=10", value.KindEndpointSlice, sliceOf(10)},
		{"slice/endpoints=100", value.KindEndpointSlice, sliceOf(100)},
		{"slice/endpoints=1000", value.KindEndpointSlice, sliceOf(1000)},
		{"slice/endpoints=1000/same", value.KindEndpointSlice,
			func(v int) metav1.Object { s := sliceOf(1000)(0); s.SetResourceVersion(fmt.Sprint(v)); return s }},
		{"virtualservice/routes=1", value.KindVirtualService, routesOf(1)},
		{"virtualservice/routes=10", value.KindVirtualService, routesOf(10)},
		{"virtualservice/routes=100", value.KindVirtualService, routesOf(100)},
		{"destinationrule", value.KindDestinationRule, ruleOf},
		{"serviceentry/endpoints=10", value.KindServiceEntry, entryOf(10)},
		{"serviceentry/endpoints=100", value.KindServiceEntry, entryOf(100)},
		{"workloadentry", value.KindWorkloadEntry, workloadOf},
		{"gateway", value.KindGateway, gatewayOf},
		{"namespace", value.KindNamespace, func(v int) metav1.Object {
			return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-000",
				Labels: map[string]string{"v": fmt.Sprint(v)}}}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := NewStore(nothing{}, Settings{Log: testLog(nil)}, "kube")
			s.Apply([]Event{event(value.KindService, usualService(0)), event(value.KindPod, usualPod(0)),
				event(value.KindEndpointSlice, usualSlice(0, 3))})
			s.Synced("kube")
			events := [][]Event{{event(c.kind, c.make(0))}, {event(c.kind, c.make(1))}}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.Apply(events[i%2])
			}
			if r := s.Rejections(); len(r) > 0 {
				b.Fatalf("refused: %+v", r)
			}
		})
	}
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "team-000", Name: name}
}

// sliceOf returns a slice of n endpoints, one of which is ready or not.
func sliceOf(n int) func(int) metav1.Object {
	return func(version int) metav1.Object {
		s, ready := usualSlice(0, n), version > 0
		s.Endpoints[n/2].Conditions.Ready = &ready
		return s
	}
}

func routesOf(n int) func(int) metav1.Object {
	return func(version int) metav1.Object {
		v := &clientnet.VirtualService{ObjectMeta: named("v")}
		v.Spec.Hosts = []string{"service-00000"}
		for i := range n {
			to := func(subset string, weight int) *networking.HTTPRouteDestination {
				return &networking.HTTPRouteDestination{Weight: int32(weight),
					Destination: &networking.Destination{Host: "service-00000", Subset: subset}}
			}
			v.Spec.Http = append(v.Spec.Http, &networking.HTTPRoute{
				Match: []*networking.HTTPMatchRequest{{
					Uri: &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: fmt.Sprint("/", i)}}}},
				Route: []*networking.HTTPRouteDestination{to("v1", 10+version), to("v2", 90-version)},
			})
		}
		return v
	}
}

func ruleOf(version int) metav1.Object {
	r := &clientnet.DestinationRule{ObjectMeta: named("r")}
	r.Spec.Host = "service-00000"
	for _, subset := range []string{"v1", "v2"} {
		r.Spec.Subsets = append(r.Spec.Subsets,
			&networking.Subset{Name: subset, Labels: map[string]string{"version": subset,
				"edition": fmt.Sprint(version)}})
	}
	return r
}

func entryOf(n int) func(int) metav1.Object {
	return func(version int) metav1.Object {
		e := &clientnet.ServiceEntry{ObjectMeta: named("e")}
		e.Spec.Hosts, e.Spec.Resolution = []string{"api.example.com"}, networking.ServiceEntry_STATIC
		e.Spec.Ports = []*networking.ServicePort{{Number: uint32(443 + version), Name: "https", Protocol: "HTTPS"}}
		for i := range n {
			e.Spec.Endpoints = append(e.Spec.Endpoints, &networking.WorkloadEntry{Address: usualAddress(i),
				Labels: map[string]string{"app": "api"}})
		}
		return e
	}
}

func workloadOf(version int) metav1.Object {
	w := &clientnet.WorkloadEntry{ObjectMeta: named("w")}
	w.Spec.Address, w.Spec.Labels, w.Spec.Weight = usualAddress(9), map[string]string{"app": "vm"}, uint32(1+version)
	return w
}

func gatewayOf(version int) metav1.Object {
	g := &clientnet.Gateway{ObjectMeta: named("g")}
	g.Spec.Selector = map[string]string{"istio": "ingressgateway"}
	g.Spec.Servers = []*networking.Server{{Port: &networking.Port{Number: uint32(80 + version), Name: "http",
		Protocol: "HTTP"}, Hosts: []string{"*.example.com"}}}
	return g
}
