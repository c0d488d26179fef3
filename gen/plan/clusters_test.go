package plan

import (
	"slices"
	"testing"

	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen/plan/inbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/gen/plan/workload"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

func booksMesh() *value.Mesh {
	return istio.Mesh(&meshconfig.MeshConfig{RootNamespace: "root"}, "cluster.local", "c1")
}

func booksKey() value.ServiceKey {
	return value.ServiceKey{Host: "books.shop.svc.cluster.local", Namespace: "shop"}
}

// bookshop returns a Snapshot with one service in namespace shop, and what change adds.
func bookshop(change func(*snapshottest.Batch)) *snapshot.Snapshot {
	port := func(name string, n int, p value.Protocol) *value.Port {
		return &value.Port{Name: name, Number: n, Protocol: p}
	}
	svc := &value.Service{
		ServiceKey: booksKey(), Name: "books", Export: value.Visibility{Public: true},
		Ports: []*value.Port{port("http", 80, value.HTTP), port("dns", 53, value.UDP), port("tcp", 9000, value.TCP)},
	}
	b := &snapshottest.Batch{
		Mesh: booksMesh(), Services: map[value.ServiceKey]*value.Service{svc.ServiceKey: svc},
		DestinationRules: map[value.ObjectKey]*value.DestinationRule{},
		Projections:      map[value.ServiceKey]*value.Projection{},
	}
	if change != nil {
		change(b)
	}
	builder := snapshot.NewBuilder(nil)
	snapshottest.Apply(builder, b)
	return builder.View().Snapshot
}

func addRule(b *snapshottest.Batch, spec *networking.DestinationRule) {
	spec.Host = booksKey().Host
	m := value.Meta{Namespace: "shop", Name: "books"}
	key := value.ObjectKey{Kind: value.KindDestinationRule, Namespace: "shop", Name: "books"}
	b.DestinationRules[key] = &value.DestinationRule{Meta: m, DestinationPolicy: istio.Policy(spec),
		Export: value.Visibility{Public: true}, From: []value.ObjectKey{key}}
}

func names(entries []*encodecache.Entry) (out []string) {
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func scopeOf(t *Tables, f scope.Facts) *scope.Scope {
	f.Traits.IPv4 = true
	return scope.New(f, value.Labels{}, t.trims)
}

func TestClustersOfAService(t *testing.T) {
	subsets := func(b *snapshottest.Batch) {
		addRule(b, &networking.DestinationRule{Subsets: []*networking.Subset{{Name: "v1"}}})
	}
	outside := func(b *snapshottest.Batch) {
		svc := *b.Services[booksKey()]
		svc.Resolution, svc.Ports = value.DNSLB, svc.Ports[:1]
		b.Services[booksKey()] = &svc
		e := &value.Endpoint{Addresses: []string{"books.example"}, Health: value.Healthy, Weight: 1,
			Ports: []value.EndpointPort{{Name: "http", Port: 8080}}}
		b.Projections[booksKey()] = &value.Projection{Any: true, Inline: []*value.Endpoint{e}}
	}
	const host = "books.shop.svc.cluster.local"
	for _, r := range []struct {
		name             string
		change           func(*snapshottest.Batch)
		clusters, assign []string
	}{
		{"ports", nil, []string{"outbound|80||" + host, "outbound|9000||" + host},
			[]string{"outbound|80||" + host, "outbound|9000||" + host}},
		{"subsets", subsets, []string{"outbound|80||" + host, "outbound|80|v1|" + host, "outbound|9000||" + host,
			"outbound|9000|v1|" + host},
			[]string{"outbound|80||" + host, "outbound|80|v1|" + host, "outbound|9000||" + host,
				"outbound|9000|v1|" + host}},
		{"names", outside, []string{"outbound|80||" + host}, nil},
		{"names and subsets without any", func(b *snapshottest.Batch) {
			outside(b)
			addRule(b, &networking.DestinationRule{Subsets: []*networking.Subset{{Name: "v9",
				Labels: map[string]string{"version": "v9"}}}})
		}, []string{"outbound|80||" + host}, nil},
	} {
		t.Run(r.name, func(t *testing.T) {
			tables, n := NewTables(), bookshop(r.change)
			clusters, assignments := tables.ClustersOf(n, scopeOf(tables, scope.Facts{Namespace: "shop"}),
				n.Service(booksKey()))
			if got := names(clusters); !slices.Equal(got, r.clusters) {
				t.Errorf("clusters %v", got)
			}
			var got []string
			for _, a := range assignments {
				got = append(got, a.Name)
			}
			if !slices.Equal(got, r.assign) {
				t.Errorf("assignments %v", got)
			}
		})
	}
}

// Scopes share what does not depend on what tells them apart.
func TestScopesShareClusters(t *testing.T) {
	plain, ranked := bookshop(nil), bookshop(func(b *snapshottest.Batch) {
		addRule(
			b,
			&networking.DestinationRule{
				TrafficPolicy: &networking.TrafficPolicy{OutlierDetection: &networking.OutlierDetection{}},
			},
		)
	})
	mesh := booksMesh()
	mesh.Clusters.Locality = &value.LocalityBalancing{}
	near := scope.Facts{Namespace: "a", Locality: value.Locality{Region: "r1"}, Node: "n1"}
	far := scope.Facts{Namespace: "b", Locality: value.Locality{Region: "r2"}, Node: "n2", ClusterID: "c2", Network: "x"}
	for _, r := range []struct {
		name                  string
		n                     *snapshot.Snapshot
		clusters, assignments bool
	}{
		{"nothing reads the location", plain, true, true},
		{"failover does", withMesh(ranked, mesh), true, false},
	} {
		tables := NewTables()
		ca, aa := tables.ClustersOf(r.n, scopeOf(tables, near), r.n.Service(booksKey()))
		cb, ab := tables.ClustersOf(r.n, scopeOf(tables, far), r.n.Service(booksKey()))
		if (ca[0] == cb[0]) != r.clusters || (aa[0] == ab[0]) != r.assignments {
			t.Errorf("%s: clusters shared %v, assignments %v", r.name, ca[0] == cb[0], aa[0] == ab[0])
		}
		if again, _ := tables.ClustersOf(r.n, scopeOf(tables, near), r.n.Service(booksKey())); again[0] != ca[0] {
			t.Errorf("%s: the same question has two answers", r.name)
		}
	}
}

func withMesh(n *snapshot.Snapshot, m *value.Mesh) *snapshot.Snapshot {
	out := *n
	out.Mesh = m
	return &out
}

func TestClustersByKindOfProxy(t *testing.T) {
	n := bookshop(nil)
	ports := n.Service(booksKey()).Ports
	targets := []workload.Target{{Service: n.Service(booksKey()), Port: ports[0], Number: 8080},
		{Service: n.Service(booksKey()), Port: ports[2], Number: 8080}}
	for _, r := range []struct {
		traits          value.Traits
		static, inbound []string
	}{
		{value.Traits{}, []string{"BlackHoleCluster", "PassthroughCluster", "InboundPassthroughCluster"},
			[]string{"inbound|8080||"}},
		{value.Traits{Interception: value.NoInterception}, []string{"BlackHoleCluster", "PassthroughCluster",
			"InboundPassthroughCluster"}, nil},
		{value.Traits{Type: value.Router}, []string{"BlackHoleCluster"}, nil},
		{value.Traits{Type: value.Proxyless}, nil, nil},
	} {
		tables := NewTables()
		sc := scopeOf(tables, scope.Facts{Namespace: "shop", Traits: r.traits})
		if got := names(tables.StaticClusters(n, sc)); !slices.Equal(got, r.static) {
			t.Errorf("%+v: %v", r.traits, got)
		}
		var own []string
		for _, e := range tables.inbound.Overlay(n, &inbound.Facts{Traits: r.traits, Namespace: "shop",
			Targets: targets}, func(string) bool { return true }, nil).Edits(xdstype.Cluster) {
			own = append(own, e.Key)
		}
		if !slices.Equal(own, r.inbound) {
			t.Errorf("%+v: %v", r.traits, own)
		}
	}
}

// The clusters of a service of three ports, found in the tables.
func BenchmarkClustersOfKnownService(b *testing.B) {
	tables, n := NewTables(), bookshop(nil)
	sc, svc := scopeOf(tables, scope.Facts{Namespace: "shop"}), n.Service(booksKey())
	held, _ := tables.ClustersOf(n, sc, svc)
	b.ReportAllocs()
	for b.Loop() {
		tables.ClustersOf(n, sc, svc)
	}
	if len(held) == 0 {
		b.Fatal("no clusters")
	}
}
