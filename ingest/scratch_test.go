package ingest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	typev1beta1 "istio.io/api/type/v1beta1"
	clientnet "istio.io/client-go/pkg/apis/networking/v1"
	clientsec "istio.io/client-go/pkg/apis/security/v1"
	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/snapshot/value"
)

// TestIncrementalEqualsScratch applies random events of two sources and holds what the Builder has after each Apply
// against what a fresh Store makes of the objects that are left, given in another order.
func TestIncrementalEqualsScratch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := newKeeper()
		s := NewStore(k, Settings{Log: testLog(nil)}, "kube", "dir")
		s.Synced("kube")
		s.Synced("dir")
		left := remains{}
		for range rapid.IntRange(1, 40).Draw(t, "applies") {
			batch := rapid.SliceOfN(rapid.Custom(drawEvent), 1, 4).Draw(t, "events")
			s.Apply(batch)
			for _, e := range batch {
				left.take(e)
			}
			compareWithScratch(t, k, left)
		}
		if got, want := len(s.Rejections()), left.refused(); got != want {
			t.Fatalf("%d refused, want %d: %v", got, want, s.Rejections())
		}
	})
}

// remains is what the sources hold: of each object the last good version, and the bad one that came after it, if any.
type remains map[string]*remnant

type remnant struct{ good, bad *Event }

func (r remains) take(e Event) {
	id := e.Source + " " + e.Key.String()
	if e.Object == nil {
		delete(r, id)
		return
	}
	if r[id] == nil {
		r[id] = &remnant{}
	}
	if r[id].bad = nil; verdict(e) != nil {
		r[id].bad = &e
	} else {
		r[id].good = &e
	}
}

func (r remains) refused() int {
	n := 0
	for _, v := range r {
		if v.bad != nil {
			n++
		}
	}
	return n
}

// compareWithScratch feeds a fresh Store: map order shuffles the objects.
func compareWithScratch(t *rapid.T, k *keeper, left remains) {
	fresh := newKeeper()
	s := NewStore(fresh, Settings{Log: testLog(nil)}, "kube", "dir")
	for _, v := range left {
		for _, e := range []*Event{v.good, v.bad} {
			if e != nil {
				s.Apply([]Event{*e})
			}
		}
	}
	if len(fresh.batches) != 0 {
		t.Fatal("handed over before all sources were synced")
	}
	s.Synced("dir")
	s.Synced("kube")
	if len(fresh.batches) != 1 {
		t.Fatalf("%d first batches", len(fresh.batches))
	}
	got, want := lines(&k.whole), lines(&fresh.whole)
	if !slices.Equal(got, want) {
		t.Fatalf("incremental:\n%s\nfrom scratch:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func spaces() *rapid.Generator[string] { return rapid.SampledFrom([]string{"istio-system", "a", "b"}) }

func names() *rapid.Generator[string] { return rapid.SampledFrom([]string{"x", "y", "z"}) }

func addresses() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::1"})
}

func hosts() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"one.example.com", "two.example.com", "x.a.svc.cluster.local"})
}

func labelSets() *rapid.Generator[map[string]string] {
	return rapid.SampledFrom([]map[string]string{
		nil, {"app": "x"}, {"app": "y"}, {"app": "x", "v": "1"},
		{"app": "x", "v": "2", "topology.istio.io/network": "n"}, {"istio-locality": "r.q"},
	})
}

func drawEvent(t *rapid.T) Event {
	kind := rapid.SampledFrom([]value.Kind{
		value.KindNamespace, value.KindNode, value.KindPod, value.KindPod, value.KindService, value.KindService,
		value.KindEndpointSlice, value.KindEndpointSlice, value.KindServiceEntry, value.KindWorkloadEntry,
		value.KindVirtualService, value.KindDestinationRule, value.KindGateway, value.KindSidecar,
		value.KindPeerAuthentication, value.KindAuthorizationPolicy, value.KindRequestAuthentication,
		value.KindMeshConfig,
	}).Draw(t, "kind")
	e := Event{Source: rapid.SampledFrom([]string{"kube", "kube", "dir", "late"}).Draw(t, "source"),
		Key: value.ObjectKey{Kind: kind}}
	if kind == value.KindMeshConfig {
		e.Object = rapid.SampledFrom([]any{
			nil, "", "trustDomain: td", "rootNamespace: b", "nonsense: 1", "defaultServiceExportTo: [\".\"]", "defaultDestinationRuleExportTo: [a]",
		}).Draw(t, "mesh")
		return e
	}
	e.Key.Cluster = rapid.SampledFrom([]string{"", "", "east", "west"}).Draw(t, "cluster")
	e.Key.Name = names().Draw(t, "name")
	switch kind {
	case value.KindNamespace:
		e.Key.Name = spaces().Draw(t, "namespace")
	case value.KindNode:
	default:
		e.Key.Namespace = spaces().Draw(t, "namespace")
	}
	if rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
		return e
	}
	m := metav1.ObjectMeta{
		Namespace: e.Key.Namespace, Name: e.Key.Name, Labels: labelSets().Draw(t, "labels"),
		CreationTimestamp: metav1.Unix(int64(rapid.IntRange(0, 2).Draw(t, "created")), 0),
	}
	e.Object = drawObject(t, kind, m)
	return e
}

func drawObject(t *rapid.T, kind value.Kind, m metav1.ObjectMeta) any {
	host := rapid.SampledFrom([]string{"x", "x.a.svc.cluster.local", "", "one.example.com"}).Draw(t, "host")
	switch kind {
	case value.KindNamespace:
		m.Annotations = rapid.SampledFrom([]map[string]string{nil,
			{"networking.istio.io/traffic-distribution": "PreferClose"}}).Draw(t, "annotations")
		return &corev1.Namespace{ObjectMeta: m}
	case value.KindNode:
		m.Labels = rapid.SampledFrom([]map[string]string{nil, {"topology.kubernetes.io/region": "r1"}}).Draw(t,
			"topology")
		return &corev1.Node{ObjectMeta: m}
	case value.KindPod:
		return drawPod(t, m)
	case value.KindService:
		return drawService(t, m)
	case value.KindEndpointSlice:
		return drawSlice(t, m)
	case value.KindServiceEntry:
		return drawServiceEntry(t, m)
	case value.KindWorkloadEntry:
		out := &clientnet.WorkloadEntry{ObjectMeta: m}
		out.Spec.Address = addresses().Draw(t, "address")
		out.Spec.Labels = labelSets().Draw(t, "own")
		out.Spec.Weight = uint32(rapid.IntRange(0, 2).Draw(t, "weight"))
		return out
	case value.KindVirtualService:
		out := &clientnet.VirtualService{ObjectMeta: m}
		out.Spec.Http = []*networking.HTTPRoute{{
			Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "x"}}}}}
		if rapid.Bool().Draw(t, "part") { // of others
			out.Spec.ExportTo = rapid.SampledFrom([][]string{nil, {"."}, {"a"}}).Draw(t, "export")
			return out
		}
		out.Spec.Hosts = []string{host}
		if rapid.Bool().Draw(t, "root") {
			d := &networking.Delegate{Name: names().Draw(t, "delegate"),
				Namespace: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "delegate's namespace")}
			out.Spec.Http = append(out.Spec.Http,
				&networking.HTTPRoute{Delegate: d, Match: []*networking.HTTPMatchRequest{{Name: "m"}}})
		}
		return out
	case value.KindDestinationRule:
		out := &clientnet.DestinationRule{ObjectMeta: m}
		out.Spec.Host = host
		return out
	case value.KindGateway:
		out := &clientnet.Gateway{ObjectMeta: m}
		out.Spec.Servers = []*networking.Server{{Port: &networking.Port{Number: 80, Name: "http", Protocol: "HTTP"},
			Hosts: []string{"./" + host}}}
		return out
	}
	if kind == value.KindPeerAuthentication {
		out := &clientsec.PeerAuthentication{ObjectMeta: m}
		out.Spec.Mtls = &security.PeerAuthentication_MutualTLS{
			Mode: security.PeerAuthentication_MutualTLS_Mode(rapid.IntRange(0, 3).Draw(t, "mode"))}
		if selector := labelSets().Draw(t, "selector"); len(selector) > 0 {
			out.Spec.Selector = &typev1beta1.WorkloadSelector{MatchLabels: selector}
		}
		return out
	}
	if kind == value.KindRequestAuthentication {
		out := &clientsec.RequestAuthentication{ObjectMeta: m}
		out.Spec.JwtRules = []*security.JWTRule{{Issuer: rapid.SampledFrom([]string{"", "i", "j"}).Draw(t, "issuer")}}
		return out
	}
	if kind == value.KindAuthorizationPolicy {
		out := &clientsec.AuthorizationPolicy{ObjectMeta: m}
		out.Spec.Action = security.AuthorizationPolicy_Action(rapid.IntRange(0, 3).Draw(t, "action"))
		if rapid.Bool().Draw(t, "rules") { // without any, some are refused
			out.Spec.Rules = []*security.Rule{{}}
		}
		if selector := labelSets().Draw(t, "selector"); len(selector) > 0 {
			out.Spec.Selector = &typev1beta1.WorkloadSelector{MatchLabels: selector}
		}
		return out
	}
	out := &clientnet.Sidecar{ObjectMeta: m}
	out.Spec.Egress = []*networking.IstioEgressListener{{Hosts: []string{"./*", "~/*"}}}
	return out
}

func drawPod(t *rapid.T, m metav1.ObjectMeta) any {
	p := &corev1.Pod{ObjectMeta: m}
	p.Spec.NodeName = names().Draw(t, "node")
	p.Spec.HostNetwork = rapid.Bool().Draw(t, "host network")
	p.Status.PodIPs = []corev1.PodIP{{IP: addresses().Draw(t, "ip")}, {IP: addresses().Draw(t, "second ip")}}
	p.Status.PodIP = p.Status.PodIPs[0].IP
	p.Status.Phase = rapid.SampledFrom([]corev1.PodPhase{corev1.PodRunning, corev1.PodRunning,
		corev1.PodFailed}).Draw(t, "phase")
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady,
		Status: rapid.SampledFrom([]corev1.ConditionStatus{"True", "False"}).Draw(t, "ready")}}
	if rapid.IntRange(0, 4).Draw(t, "deleted") == 0 {
		p.DeletionTimestamp = &metav1.Time{}
	}
	return p
}

func drawService(t *rapid.T, m metav1.ObjectMeta) any {
	s := &corev1.Service{ObjectMeta: m}
	if rapid.Bool().Draw(t, "sessions") {
		s.Labels = map[string]string{"istio.io/persistent-session": "c"}
	}
	s.Spec.Selector = labelSets().Draw(t, "selector")
	s.Spec.ClusterIP = rapid.SampledFrom([]string{"None", "10.96.0.1", ""}).Draw(t, "cluster ip")
	if rapid.IntRange(0, 4).Draw(t, "external") == 0 {
		s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "one.example.com"
	}
	s.Spec.Ports = []corev1.ServicePort{{Name: rapid.SampledFrom([]string{"http", "tcp"}).Draw(t, "port"), Port: 80}}
	return s
}

func drawSlice(t *rapid.T, m metav1.ObjectMeta) any {
	m.Labels = map[string]string{discovery.LabelServiceName: names().Draw(t, "service")}
	s := &discovery.EndpointSlice{ObjectMeta: m}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"http", "tcp"}), 1, 2, rapid.ID).Draw(t,
		"ports") {
		port := int32(rapid.IntRange(80, 81).Draw(t, "port"))
		s.Ports = append(s.Ports, discovery.EndpointPort{Name: &name, Port: &port})
	}
	flag := func(name string) *bool {
		return rapid.SampledFrom([]*bool{nil, new(bool), &[]bool{true}[0]}).Draw(t, name)
	}
	for range rapid.IntRange(0, 3).Draw(t, "endpoints") {
		e := discovery.Endpoint{
			Addresses: []string{addresses().Draw(t, "address")},
			Conditions: discovery.EndpointConditions{Ready: flag("ready"), Serving: flag("serving"),
				Terminating: flag("terminating")},
		}
		if rapid.Bool().Draw(t, "named") {
			e.TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: names().Draw(t, "pod"), Namespace: m.Namespace}
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

func drawServiceEntry(t *rapid.T, m metav1.ObjectMeta) any {
	out := &clientnet.ServiceEntry{ObjectMeta: m}
	spec := &out.Spec
	spec.Hosts = rapid.SliceOfNDistinct(hosts(), 1, 2, rapid.ID).Draw(t, "hosts")
	spec.Ports = []*networking.ServicePort{{Number: uint32(rapid.IntRange(80, 82).Draw(t, "number")), Name: "http",
		Protocol: "HTTP"}}
	spec.Resolution = rapid.SampledFrom([]networking.ServiceEntry_Resolution{
		networking.ServiceEntry_STATIC, networking.ServiceEntry_DNS, networking.ServiceEntry_NONE,
	}).Draw(t, "resolution")
	switch rapid.IntRange(0, 2).Draw(t, "endpoints") {
	case 0:
		spec.WorkloadSelector = &networking.WorkloadSelector{Labels: rapid.SampledFrom([]map[string]string{{"app": "x"},
			{"app": "y"}, {"v": "1", "app": "x"}}).Draw(t, "selector")}
	case 1:
		if spec.Resolution != networking.ServiceEntry_NONE {
			spec.Endpoints = []*networking.WorkloadEntry{{Address: addresses().Draw(t, "address"),
				ServiceAccount: "sa"}}
		}
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "addresses") {
		spec.Addresses = append(spec.Addresses, fmt.Sprintf("192.0.2.%d", i))
	}
	return out
}
