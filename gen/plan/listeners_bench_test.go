package plan

import (
	"fmt"
	"testing"

	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen/plan/inbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/gen/plan/workload"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// manyListeners returns 1,000 services in 20 namespaces, each with an HTTP and a TCP port that it shares with all
// others.
func manyListeners() (*snapshot.Builder, *scope.Scope, *Tables) {
	b := &snapshottest.Batch{
		Mesh: istio.Mesh(&meshconfig.MeshConfig{RootNamespace: "root",
			ProxyListenPort: 15001, ProxyInboundListenPort: 15006}, "cluster.local", ""),
		Services: map[value.ServiceKey]*value.Service{},
	}
	for i := range 1000 {
		k := value.ServiceKey{Host: fmt.Sprintf("s%d.n%d.svc.cluster.local", i, i%20), Namespace: fmt.Sprint("n", i%20)}
		b.Services[k] = &value.Service{ServiceKey: k, Created: int64(i), Export: value.Visibility{Public: true},
			Addresses: []string{fmt.Sprintf("10.96.%d.%d", i/250, i%250)},
			Ports: []*value.Port{{Name: "http", Number: 80, Protocol: value.HTTP},
				{Name: "tcp", Number: 9000, Protocol: value.TCP}}}
	}
	builder := snapshot.NewBuilder(nil)
	snapshottest.Apply(builder, b)
	t := NewTables()
	return builder, scope.New(scope.Facts{Namespace: "n0", Traits: value.Traits{IPv4: true, Filters: value.AllFilters}},
		nil, t.trims), t
}

// keep holds entries as a ResourceSet does, so that the tables have them.
type keep [][]*encodecache.Entry

func BenchmarkAllListenersOf1000Services(b *testing.B) {
	builder, sc, t := manyListeners()
	n := builder.View().Snapshot
	var held keep
	for b.Loop() {
		held = held[:0]
		for svc := range sc.Services(n) {
			held = append(held, t.AddressListeners(n, sc, svc))
		}
		held = append(held, t.WildcardListeners(n, sc, 80), t.WildcardListeners(n, sc, 9000))
	}
}

func BenchmarkOneServicesListeners(b *testing.B) {
	builder, sc, t := manyListeners()
	n := builder.View().Snapshot
	svc := sc.Service(n, "s7.n7.svc.cluster.local")
	held := keep{t.AddressListeners(n, sc, svc)}
	b.ReportAllocs()
	for b.Loop() {
		held[0] = t.AddressListeners(n, sc, svc)
	}
}

// BenchmarkWildcardListener is what a scope does for a port of 1,000 services whenever one of them is touched.
func BenchmarkWildcardListener(b *testing.B) {
	builder, sc, t := manyListeners()
	n := builder.View().Snapshot
	held := keep{t.WildcardListeners(n, sc, 80)}
	b.ReportAllocs()
	for b.Loop() {
		held[0] = t.WildcardListeners(n, sc, 80)
	}
}

// BenchmarkWildcardListenerOfNewSnapshot is the same for the first scope after a change.
func BenchmarkWildcardListenerOfNewSnapshot(b *testing.B) {
	builder, sc, t := manyListeners()
	held := keep{t.WildcardListeners(builder.View().Snapshot, sc, 80)}
	key := value.ObjectKey{Kind: value.KindVirtualService, Namespace: "n0", Name: "v"}
	for b.Loop() {
		b.StopTimer()
		snapshottest.Apply(builder, &snapshottest.Batch{VirtualServices: map[value.ObjectKey]*value.VirtualService{key: {}}})
		n := builder.View().Snapshot
		b.StartTimer()
		held[0] = t.WildcardListeners(n, sc, 80)
	}
}

func BenchmarkOverlay(b *testing.B) {
	builder, sc, t := manyListeners()
	n := builder.View().Snapshot
	svc := sc.Service(n, "s7.n7.svc.cluster.local")
	own := &inbound.Facts{Traits: sc.Traits, Namespace: sc.Namespace, Targets: []workload.Target{
		{Service: svc, Port: svc.Ports[0], Number: 8080}, {Service: svc, Port: svc.Ports[1], Number: 9000}}}
	sees := func(string) bool { return true }
	held := t.inbound.Overlay(n, own, sees, nil)
	b.ReportAllocs()
	for b.Loop() {
		held = t.inbound.Overlay(n, own, sees, held)
	}
}
