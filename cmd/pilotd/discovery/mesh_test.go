package discovery

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	meshv1 "istio.io/api/networking/v1alpha3"
	networkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// put returns the event of an object that is there now.
func put(kind value.Kind, o metav1.Object) ingest.Event {
	return ingest.Event{Source: "test", Key: value.ObjectKey{Kind: kind, Namespace: o.GetNamespace(),
		Name: o.GetName()}, Object: o}
}

// gone returns the event of an object that is deleted.
func gone(e ingest.Event) ingest.Event { return ingest.Event{Source: e.Source, Key: e.Key} }

func inShop(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }

// hostOf returns the host name of a service in the namespace shop.
func hostOf(name string) string { return name + ".shop.svc.cluster.local" }

// clusterOf returns the cluster of a service's first port.
func clusterOf(name string) string { return "outbound|80||" + hostOf(name) }

// service returns a Service in the namespace shop: HTTP on port 80, and TCP on the others.
func service(name, ip string, others ...int32) ingest.Event {
	s := &corev1.Service{ObjectMeta: inShop(name), Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": name}, ClusterIP: ip, Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
	}}
	for _, n := range others {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("tcp-", n), Port: n})
	}
	return put(value.KindService, s)
}

// pod returns a running Pod of a service.
func pod(name, app, ip string) ingest.Event {
	p := &corev1.Pod{ObjectMeta: inShop(name), Spec: corev1.PodSpec{NodeName: "n1", ServiceAccountName: app},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}}}
	p.Labels = map[string]string{"app": app, "version": "v1", "security.istio.io/tlsMode": "istio"}
	return put(value.KindPod, p)
}

// slice returns the EndpointSlice of a service, with all that port 80 and 9000 of it need.
func slice(name string, addresses ...string) ingest.Event {
	s := &discoveryv1.EndpointSlice{ObjectMeta: inShop(name + "-1"), AddressType: discoveryv1.AddressTypeIPv4}
	s.Labels = map[string]string{"kubernetes.io/service-name": name}
	for port, number := range map[string]int32{"http": 8080, "tcp-9000": 9000} {
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: &port, Port: &number})
	}
	ready := true
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a},
			Conditions: discoveryv1.EndpointConditions{Ready: &ready},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "pod-" + a}})
	}
	return put(value.KindEndpointSlice, s)
}

// virtualService sends the requests for a host to others.
func virtualService(name, host string, to ...string) ingest.Event {
	r := &meshv1.HTTPRoute{}
	for _, t := range to {
		r.Route = append(r.Route, &meshv1.HTTPRouteDestination{Destination: &meshv1.Destination{Host: t},
			Weight: int32(100 / len(to))})
	}
	return put(value.KindVirtualService, &networkingv1.VirtualService{ObjectMeta: inShop(name),
		Spec: meshv1.VirtualService{Hosts: []string{host}, Http: []*meshv1.HTTPRoute{r}}})
}

// rule returns a DestinationRule with two subsets.
func rule(name, host string, policy *meshv1.TrafficPolicy) ingest.Event {
	return put(value.KindDestinationRule, &networkingv1.DestinationRule{ObjectMeta: inShop(name),
		Spec: meshv1.DestinationRule{Host: host, TrafficPolicy: policy, Subsets: []*meshv1.Subset{
			{Name: "v1", Labels: map[string]string{"version": "v1", "app": name}},
			{Name: "v2", Labels: map[string]string{"version": "v2", "app": name}},
		}}})
}

// idle returns a policy that clusters (the time to connect) and TCP listeners (the idle time) show, both of so many
// seconds.
func idle(seconds int) *meshv1.TrafficPolicy {
	return &meshv1.TrafficPolicy{ConnectionPool: &meshv1.ConnectionPoolSettings{
		Tcp: &meshv1.ConnectionPoolSettings_TCPSettings{
			ConnectTimeout: durationpb.New(time.Duration(seconds) * time.Second),
			IdleTimeout:    durationpb.New(time.Duration(seconds) * time.Second)}}}
}

// gateway returns a Gateway with one HTTP server for all hosts.
func gateway() ingest.Event {
	return put(value.KindGateway,
		&networkingv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "istio-system", Name: "front"},
			Spec: meshv1.Gateway{
				Selector: map[string]string{"app": "gateway"},
				Servers: []*meshv1.Server{{Port: &meshv1.Port{Number: 80, Name: "http", Protocol: "HTTP"},
					Hosts: []string{"*"}}},
			}})
}

// sampleMesh has an object of each kind, and what joins them.
func sampleMesh() []ingest.Event {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1",
		Labels: map[string]string{"topology.kubernetes.io/region": "r1", "topology.kubernetes.io/zone": "z1"}}}
	entry := &networkingv1.ServiceEntry{ObjectMeta: inShop("api"),
		Spec: meshv1.ServiceEntry{Hosts: []string{"api.example.com"}, Location: meshv1.ServiceEntry_MESH_EXTERNAL,
			Resolution: meshv1.ServiceEntry_DNS,
			Ports: []*meshv1.ServicePort{{Number: 443, Name: "tls", Protocol: "TLS"},
				{Number: 80, Name: "http", Protocol: "HTTP"}}}}
	vms := &networkingv1.ServiceEntry{ObjectMeta: inShop("vms"),
		Spec: meshv1.ServiceEntry{Hosts: []string{"vms.example.com"}, Location: meshv1.ServiceEntry_MESH_INTERNAL,
			Resolution:       meshv1.ServiceEntry_STATIC,
			WorkloadSelector: &meshv1.WorkloadSelector{Labels: map[string]string{"app": "vm"}},
			Ports:            []*meshv1.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}}}}
	vm := &networkingv1.WorkloadEntry{ObjectMeta: inShop("vm"), Spec: meshv1.WorkloadEntry{Address: "10.30.0.1",
		Labels: map[string]string{"app": "vm"}, ServiceAccount: "vm"}}
	sidecar := &networkingv1.Sidecar{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "default"},
		Spec: meshv1.Sidecar{Egress: []*meshv1.IstioEgressListener{{Hosts: []string{"shop/*"}}}}}
	return []ingest.Event{
		put(value.KindNamespace, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}),
		put(value.KindNode, node),
		service("web", "10.96.0.1"), pod("pod-10.10.0.1", "web", "10.10.0.1"), pod("pod-10.10.0.2", "web",
			"10.10.0.2"), slice("web", "10.10.0.1", "10.10.0.2"),
		service("cart", "10.96.0.2", 9000), pod("pod-10.10.0.3", "cart", "10.10.0.3"), slice("cart", "10.10.0.3"),
		service("other", "10.96.0.3"),
		put(value.KindServiceEntry, entry), put(value.KindServiceEntry, vms), put(value.KindWorkloadEntry,
			vm), put(value.KindSidecar, sidecar),
		virtualService("web", "web", hostOf("web"), hostOf("cart")), gatewayRoute("web"), gateway(),
		rule("cart", hostOf("cart"),
			&meshv1.TrafficPolicy{OutlierDetection: &meshv1.OutlierDetection{MinHealthPercent: 10}}),
		{Source: "test", Key: value.ObjectKey{Kind: value.KindMeshConfig, Namespace: "istio-system", Name: "istio"},
			Object: "outboundTrafficPolicy: {mode: ALLOW_ANY}\n"},
	}
}
