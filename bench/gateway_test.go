package bench

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1alpha3"
	networkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/bench/mesh"
	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot/value"
)

// edge is a mesh behind gateways: as many VirtualServices as hosts, to a tenth as many services, and a Gateway that
// takes all hosts in plain text, or one for each host that ends its TLS.
type edge struct {
	hosts   int
	tenants bool
}

func (e edge) services() int { return max(e.hosts/10, 10) }

func put(kind value.Kind, o metav1.Object) ingest.Event {
	return ingest.Event{Source: mesh.Source, Key: value.ObjectKey{Kind: kind, Namespace: o.GetNamespace(),
		Name: o.GetName()}, Object: o}
}

func gone(e ingest.Event) ingest.Event {
	e.Object = nil
	return e
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.Unix(1, 0)}
}

func (e edge) tenant(i int) string { return fmt.Sprint("team-", i%10) }

// host is the i-th host with its VirtualService; variant is what an edit changes.
func (e edge) route(i, variant int) ingest.Event {
	gateway := "edge/front"
	if e.tenants {
		gateway = fmt.Sprintf("edge/front-%d", i)
	}
	to := fmt.Sprintf("svc-%d.%s.svc.cluster.local", i%e.services(), e.tenant(i%e.services()))
	return put(value.KindVirtualService,
		&networkingv1.VirtualService{ObjectMeta: named(e.tenant(i), fmt.Sprint("route-", i)),
			Spec: networking.VirtualService{
				Hosts: []string{fmt.Sprintf("host-%d.example.com", i)}, Gateways: []string{gateway},
				Http: []*networking.HTTPRoute{{
					Match: []*networking.HTTPMatchRequest{{
						Uri: &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: "/api"}}}},
					Route:   []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: to}}},
					Timeout: durationpb.New(time.Duration(1+variant) * time.Second),
				}, {Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: to,
					Port: &networking.PortSelector{Number: 80}}}}}},
			}})
}

// unseen returns a VirtualService of a Gateway that no router has.
func (e edge) unseen(variant int) ingest.Event {
	out := e.route(0, variant)
	o := out.Object.(*networkingv1.VirtualService)
	o.Name, o.Spec.Gateways = "unseen", []string{"edge/other"}
	return put(value.KindVirtualService, o)
}

// front returns the Gateway of all hosts, or of the i-th.
func (e edge) front(i, variant int) ingest.Event {
	if !e.tenants {
		return put(value.KindGateway, &networkingv1.Gateway{ObjectMeta: named("edge", "front"),
			Spec: networking.Gateway{Selector: map[string]string{"istio": "front"}, Servers: []*networking.Server{
				{Port: &networking.Port{Number: 80, Name: "http", Protocol: "HTTP"}, Hosts: []string{"*"}},
				{Port: &networking.Port{Number: 443, Name: "https", Protocol: "HTTPS"}, Hosts: []string{"*"},
					Tls: certificate(variant)},
			}}})
	}
	return put(value.KindGateway, &networkingv1.Gateway{ObjectMeta: named("edge", fmt.Sprint("front-", i)),
		Spec: networking.Gateway{Selector: map[string]string{"istio": "front"}, Servers: []*networking.Server{
			{Port: &networking.Port{Number: 443, Name: "https", Protocol: "HTTPS"},
				Hosts: []string{fmt.Sprintf("host-%d.example.com", i)}, Tls: certificate(variant)},
		}}})
}

func certificate(variant int) *networking.ServerTLSSettings {
	return &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_SIMPLE,
		CredentialName: fmt.Sprint("cert-", variant)}
}

func (e edge) service(i int, ports ...int32) ingest.Event {
	s := &corev1.Service{ObjectMeta: named(e.tenant(i), fmt.Sprint("svc-", i)),
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": fmt.Sprint("svc-", i)},
			ClusterIP: fmt.Sprintf("10.%d.%d.%d", 96+i/62500, i/250%250, i%250+1)}}
	for _, p := range append([]int32{80}, ports...) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("http-", p), Port: p,
			Protocol: corev1.ProtocolTCP})
	}
	return put(value.KindService, s)
}

func (e edge) rule(i, variant int) ingest.Event {
	return put(value.KindDestinationRule,
		&networkingv1.DestinationRule{ObjectMeta: named(e.tenant(i), fmt.Sprint("svc-", i)),
			Spec: networking.DestinationRule{
				Host: fmt.Sprintf("svc-%d.%s.svc.cluster.local", i, e.tenant(i)),
				TrafficPolicy: &networking.TrafficPolicy{ConnectionPool: &networking.ConnectionPoolSettings{
					Tcp: &networking.ConnectionPoolSettings_TCPSettings{MaxConnections: int32(1 + variant)}}},
			}})
}

func (e edge) events() []ingest.Event {
	out := []ingest.Event{{Source: mesh.Source, Key: value.ObjectKey{Kind: value.KindMeshConfig,
		Namespace: "istio-system", Name: "istio"}, Object: "rootNamespace: istio-system\n"}}
	for i := range e.services() {
		out = append(out, e.service(i))
	}
	out = append(out, e.front(0, 0), e.unseen(0))
	for i := range e.hosts {
		out = append(out, e.route(i, 0))
		if e.tenants {
			out = append(out, e.front(i, 0))
		}
	}
	return out
}

// planned plans for a router of the mesh; more are of a class of their own each.
func (e edge) planned(b testing.TB, routers int) *planned {
	p := newPlannedOf(e.events())
	for i := range routers {
		p.planner.Attach(uint64(i+1), e.router(b, i))
	}
	p.settle(b)
	return p
}

func (e edge) router(b testing.TB, i int) *proxy.Proxy {
	node := mesh.New(mesh.Usual(10)).Node(0)
	node.Id = fmt.Sprintf("router~10.200.%d.%d~front-%d.edge~edge.svc.cluster.local", i/250, i%250+1, i)
	p, err := proxy.Accept(node, proxy.Peer{})
	must(b, err)
	p.Namespace, p.Labels, p.Addresses = "edge", proxy.PackLabels(value.Labels{"istio": "front"}),
		[]string{fmt.Sprintf("10.200.%d.%d", i/250, i%250+1)}
	p.Network = fmt.Sprint("net-", i)
	return p
}

func edges(f func(name string, e edge)) {
	sizes := upTo(100, 10_000)
	if !testing.Short() {
		sizes = append(sizes, 5000) // as the shape gateways has routes
	}
	for _, hosts := range sizes {
		f(fmt.Sprintf("one/hosts=%d", hosts), edge{hosts: hosts})
		f(fmt.Sprintf("tenants/hosts=%d", hosts), edge{hosts: hosts, tenants: true})
	}
}

// BenchmarkGatewayFirst is what the first router of all costs: everything is generated and encoded.
func BenchmarkGatewayFirst(b *testing.B) {
	edges(func(name string, e edge) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n, used := 0, time.Duration(0)
			for b.Loop() {
				b.StopTimer()
				p := e.planned(b, 0)
				runtime.GC()
				b.StartTimer()
				cpu := cpuTime()
				p.planner.Attach(1, e.router(b, 0))
				p.settle(b)
				b.StopTimer()
				n, used = n+1, used+cpuTime()-cpu
				p.stop()
				b.StartTimer()
			}
			b.ReportMetric(float64(used.Microseconds())/float64(n), "cpu-µs/op")
		})
	})
}

// BenchmarkGatewayEdit is an edit of each kind, from Store.Apply until the router's new ResourceSet is there.
func BenchmarkGatewayEdit(b *testing.B) {
	edges(func(name string, e edge) {
		edits := map[string]func(n int) ingest.Event{
			"route":  func(n int) ingest.Event { return e.route(7, n+1) },
			"unseen": func(n int) ingest.Event { return e.unseen(n + 1) },
			"server": func(n int) ingest.Event { return e.front(7, n+1) },
			"rule":   func(n int) ingest.Event { return e.rule(3, n+1) },
			"service": func(n int) ingest.Event {
				if n%2 == 0 {
					return e.service(3, 81)
				}
				return e.service(3)
			},
			"come": func(n int) ingest.Event {
				if n%2 == 0 {
					return gone(e.route(7, 0))
				}
				return e.route(7, 0)
			},
		}
		for _, kind := range []string{"route", "unseen", "server", "rule", "service", "come"} {
			b.Run(kind+"/"+name, func(b *testing.B) {
				p := e.planned(b, 1)
				defer p.stop()
				b.ReportAllocs()
				n, cpu := 0, cpuTime()
				for b.Loop() {
					p.store.Apply([]ingest.Event{edits[kind](n)})
					p.settle(b)
					n++
				}
				b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/float64(n), "cpu-µs/op")
			})
		}
	})
}

// BenchmarkGatewayClasses is an edit of a route that routers in as many networks have, each of which is a class of its
// own.
func BenchmarkGatewayClasses(b *testing.B) {
	for _, routers := range []int{1, 10} {
		b.Run(fmt.Sprintf("hosts=1000/classes=%d", routers), func(b *testing.B) {
			e := edge{hosts: 1000}
			p := e.planned(b, routers)
			defer p.stop()
			b.ReportAllocs()
			n, cpu := 0, cpuTime()
			for b.Loop() {
				p.store.Apply([]ingest.Event{e.route(7, n+1)})
				p.settle(b)
				n++
			}
			b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/float64(n), "cpu-µs/op")
		})
	}
}

// BenchmarkGatewayMemory is what a router holds beside the mesh: the first, and one more that is of a class of its own.
func BenchmarkGatewayMemory(b *testing.B) {
	edges(func(name string, e edge) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p := e.planned(b, 0)
				empty := liveHeap()
				p.planner.Attach(1, e.router(b, 0))
				p.settle(b)
				first := liveHeap()
				p.planner.Attach(2, e.router(b, 1))
				p.settle(b)
				b.ReportMetric((float64(first)-float64(empty))/1024, "first-KiB")
				b.ReportMetric((float64(liveHeap())-float64(first))/1024, "second-KiB")
				p.stop()
			}
		})
	})
}
