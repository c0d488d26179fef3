package plan

import (
	"fmt"
	"testing"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen/plan/outbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// benchMesh has n services on port 80, every other one with a VirtualService, and a Gateway to which all of these are
// bound.
func benchMesh(n int) *snapshot.Snapshot {
	b := &snapshottest.Batch{
		Mesh: routeMesh(), Services: map[value.ServiceKey]*value.Service{},
		VirtualServices: map[value.ObjectKey]*value.VirtualService{},
		Gateways:        map[value.ObjectKey]*value.Gateway{},
	}
	for i := range n {
		ns := fmt.Sprint("ns", i%50)
		host := fmt.Sprintf("svc%d.%s.svc.cluster.local", i, ns)
		o := objectLine{set: map[string]string{"port": "80/HTTP", "ip": fmt.Sprintf("10.%d.%d.1", i/250, i%250),
			"host": host, "to": host, "match": "/api"}}
		s := o.service(host, ns)
		b.Services[s.ServiceKey] = s
		if i%2 == 0 {
			vs := o.virtualService(ns + "/" + s.Name)
			vs.Gateways = append(vs.Gateways, "gw/edge")
			b.VirtualServices[value.ObjectKey{Kind: value.KindVirtualService, Namespace: ns, Name: vs.Name}] = vs
		}
	}
	g := &value.Gateway{Meta: value.Meta{Namespace: "gw", Name: "edge"},
		GatewaySettings: value.GatewaySettings{Workload: value.Labels{"app": "edge"}, Servers: []*value.Server{{
			Port:  value.ListenerPort{Number: 80, Name: "http", Protocol: value.HTTP},
			Hosts: []value.ServerHost{{Namespace: "*", Host: "*"}},
		}}}}
	b.Gateways[value.ObjectKey{Kind: value.KindGateway, Namespace: "gw", Name: "edge"}] = g
	builder := snapshot.NewBuilder(silent{})
	snapshottest.Apply(builder, b)
	return builder.View().Snapshot
}

func allHosts(t *Tables, n *snapshot.Snapshot, sc *scope.Scope) outbound.VirtualHosts {
	var items []chunked.Item[*encodecache.Fragment]
	for svc := range n.Services() {
		if f := t.VirtualHostOf(sc.OnPort(n, 80, nil), svc.Host); f != nil {
			items = append(items, chunked.Item[*encodecache.Fragment]{Key: svc.Host, Value: f})
		}
	}
	return chunked.New(items)
}

// BenchmarkVirtualHostOf is one host whose virtual host is encoded already: what a second class pays.
func BenchmarkVirtualHostOf(b *testing.B) {
	n, t := benchMesh(1000), NewTables()
	sc := scope.New(scope.Facts{Namespace: "ns1", Traits: value.Traits{IPv4: true}}, nil, t.trims)
	hosts := allHosts(t, n, sc)
	k := scope.NewMemo(n)
	for kind, host := range map[string]string{"plain": "svc1.ns1.svc.cluster.local",
		"routes": "svc2.ns2.svc.cluster.local"} {
		b.Run(kind, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				t.VirtualHostOf(sc.OnPort(n, 80, k), host)
			}
		})
	}
	_ = hosts.Len()
}

// BenchmarkRouteConfiguration is a route configuration in which one of many virtual hosts changed.
func BenchmarkRouteConfiguration(b *testing.B) {
	for _, size := range []int{1000, 10000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			n, t := benchMesh(size), NewTables()
			sc := scope.New(scope.Facts{Namespace: "ns1", Traits: value.Traits{IPv4: true}}, nil, t.trims)
			hosts := allHosts(t, n, sc)
			other := encodecache.NewFragment([]byte("another"))
			t.RouteConfiguration(n, sc, 80, hosts)
			b.ReportAllocs()
			for b.Loop() {
				t.RouteConfiguration(n, sc, 80, hosts.Set("svc1.ns1.svc.cluster.local", other))
			}
		})
	}
}

// BenchmarkGateway is a router with many bound VirtualServices, from nothing, all encoded already.
func BenchmarkGateway(b *testing.B) {
	n, t := benchMesh(10000), NewTables()
	labels := value.Labels{"app": "edge"}
	facts := scope.Facts{Namespace: "gw", Labels: value.LabelsKey(labels), Traits: value.Traits{Type: value.Router,
		IPv4: true}}
	held := t.newBase(n, facts, labels)
	b.ReportAllocs()
	for b.Loop() {
		t.newBase(n, facts, labels)
	}
	_ = held.routes.Len()
}
