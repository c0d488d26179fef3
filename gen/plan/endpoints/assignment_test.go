package endpoints

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"unique"

	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

func booksKey() value.ServiceKey {
	return value.ServiceKey{Host: "books.shop.svc.cluster.local", Namespace: "shop"}
}

func booksEndpoint(i int) *value.Endpoint {
	zone := i % 3
	return &value.Endpoint{
		Addresses: []string{fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)},
		Ports:     []value.EndpointPort{{Name: "http", Port: 8080}},
		Identity: unique.Make(value.Identity{Namespace: "shop", Workload: fmt.Sprint("books-", i%10), Cluster: "c1",
			TLSMode: "istio", LabelsKey: "app=books"}),
		Labels: value.Labels{"app": "books", "topology.kubernetes.io/region": "r1",
			"topology.kubernetes.io/zone": fmt.Sprint("z", zone), "version": fmt.Sprint("v", i%2)},
		Locality: value.Locality{Region: "r1", Zone: fmt.Sprint("z", zone)}, Health: value.Healthy, Weight: 1,
		Node: fmt.Sprint("n", i%5),
	}
}

func booksEndpoints(n int) []*value.Endpoint {
	var out []*value.Endpoint
	for i := range n {
		out = append(out, booksEndpoint(i))
	}
	return out
}

// endpointTables makes one table after the other.
type endpointTables struct{ b *snapshot.Builder }

func (e *endpointTables) next(eps []*value.Endpoint) *snapshot.EndpointTable {
	if e.b == nil {
		e.b = snapshot.NewBuilder(nil)
	}
	snapshottest.Apply(e.b, &snapshottest.Batch{Endpoints: map[value.ServiceKey][]*value.Endpoint{booksKey(): eps}})
	return e.b.View().Endpoints
}

func booksAssignment(order gen.Ordering, change func(*Selection)) *classes.Assignment {
	k := Selection{Service: booksKey(), Port: "http", Form: gen.EndpointForm{MutualTLS: true}, Labels: order.Labels}
	if change != nil {
		change(&k)
	}
	return NewTables().Get(Key{Name: "outbound|80||books", Selection: k, Order: order})
}

func readAssignment(t testing.TB, e *encodecache.Entry) *endpointpb.ClusterLoadAssignment {
	t.Helper()
	out := &endpointpb.ClusterLoadAssignment{}
	if err := proto.Unmarshal(e.Message(), out); err != nil {
		t.Fatal(err)
	}
	if err := out.ValidateAll(); err != nil {
		t.Error(err)
	}
	return out
}

// zonesOf tells an assignment in a line: zone:priority:weight:endpoints of each locality.
func zonesOf(a *endpointpb.ClusterLoadAssignment) (out []string) {
	for _, l := range a.GetEndpoints() {
		out = append(out, fmt.Sprintf("%s:%d:%d:%d", l.GetLocality().GetZone(), l.GetPriority(),
			l.GetLoadBalancingWeight().GetValue(), len(l.GetLbEndpoints())))
	}
	return out
}

func TestAssignmentGroups(t *testing.T) {
	near := gen.Ordering{Near: true, Anywhere: true, From: value.Locality{Region: "r1", Zone: "z1"}}
	share := gen.Ordering{
		Distribute: &value.Distribution{To: map[string]uint32{"r1/z0": 70, "r1/z2": 30}},
	}
	for _, r := range []struct {
		name   string
		order  gen.Ordering
		change func(*Selection)
		n      int
		want   []string
	}{
		{"no endpoints", gen.Ordering{}, nil, 0, nil},
		{"unranked", gen.Ordering{}, nil, 30, []string{"z0:0:10:10", "z1:0:10:10", "z2:0:10:10"}},
		{"near first", near, nil, 30, []string{"z0:1:10:10", "z1:0:10:10", "z2:1:10:10"}},
		{"shares", share, nil, 30, []string{"z0:0:70:10", "z1:0:10:0", "z2:0:30:10"}},
		{"by label", gen.Ordering{Labels: "version=v1"}, nil, 6, []string{"z0:0:1:1", "z0:1:1:1", "z1:0:1:1",
			"z1:1:1:1", "z2:0:1:1", "z2:1:1:1"}},
		{"subset", gen.Ordering{}, func(k *Selection) { k.Subset = "app=books,version=v1" }, 30,
			[]string{"z0:0:5:5", "z1:0:5:5", "z2:0:5:5"}},
		{"own node", gen.Ordering{}, func(k *Selection) { k.Local, k.Node = true, "n1" }, 30,
			[]string{"z0:0:2:2", "z1:0:2:2", "z2:0:2:2"}},
		{"port that nobody serves", gen.Ordering{}, func(k *Selection) { k.Port = "other" }, 30, nil},
		{"big", near, nil, 3000, []string{"z0:1:1000:1000", "z1:0:1000:1000", "z2:1:1000:1000"}},
	} {
		t.Run(r.name, func(t *testing.T) {
			e := booksAssignment(r.order, r.change).Entry((&endpointTables{}).next(booksEndpoints(r.n)))
			a := readAssignment(t, e)
			if got := zonesOf(a); !slices.Equal(got, r.want) {
				t.Errorf("got %v", got)
			}
			if a.GetClusterName() != "outbound|80||books" || e.Name() != a.GetClusterName() ||
				e.TypeURL() != xdstype.EndpointURL {
				t.Error(e.Name(), a.GetClusterName())
			}
		})
	}
}

// An address that comes twice is listed once for clients that refuse it otherwise.
func TestAssignmentWithoutDuplicates(t *testing.T) {
	table := (&endpointTables{}).next([]*value.Endpoint{booksEndpoint(1), booksEndpoint(1)})
	for once, want := range map[bool]int{true: 1, false: 2} {
		a := readAssignment(t, booksAssignment(gen.Ordering{}, func(k *Selection) { k.Once = once }).Entry(table))
		if got := len(a.GetEndpoints()[0].GetLbEndpoints()); got != want {
			t.Errorf("once %v: %d", once, got)
		}
	}
}

// Whatever changed before, an assignment is what it would be from nothing: the same bytes and version.
func TestAssignmentFromChangesEqualsFromNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	orders := []gen.Ordering{{}, {Near: true, Anywhere: true, From: value.Locality{Region: "r1", Zone: "z1"}},
		{Labels: "version=v1"}}
	for _, order := range orders {
		var tables endpointTables
		a := booksAssignment(order, nil)
		eps := booksEndpoints(500)
		for range 200 {
			eps = slices.Clone(eps)
			for range 1 + random.IntN(3) {
				switch i := random.IntN(max(1, len(eps))); random.IntN(4) {
				case 0:
					if len(eps) > 0 {
						eps = slices.Delete(eps, i, i+1)
					}
				case 1:
					eps = slices.Insert(eps, i, booksEndpoint(1000+random.IntN(1<<20)))
				default:
					if len(eps) > 0 {
						e := *eps[i]
						e.Weight++
						eps[i] = &e
					}
				}
			}
			table := tables.next(eps)
			got, want := a.Entry(table), booksAssignment(order, nil).Entry(table)
			if got.Sum() != want.Sum() || !bytes.Equal(got.Message(), want.Message()) {
				t.Fatal("an assignment that changed differs from a new one")
			}
		}
	}
}

// One endpoint of many: one chunk is encoded, and everything else is what it was.
func TestOneEndpointEncodesOneChunk(t *testing.T) {
	var tables endpointTables
	a := booksAssignment(gen.Ordering{}, nil)
	eps := booksEndpoints(10000)
	before := parts(a.Entry(tables.next(eps)))
	eps = slices.Clone(eps)
	e := *eps[5000]
	e.Health = value.Unhealthy
	eps[5000] = &e
	fresh := 0
	for f := range parts(a.Entry(tables.next(eps))) {
		if _, ok := before[f]; !ok {
			fresh++
		}
	}
	const headers, zones = 1 + 3, 3 // the name's and the zones'
	if fresh > zones+headers {
		t.Errorf("%d new parts of %d", fresh, len(before))
	}
}

func parts(e *encodecache.Entry) map[*encodecache.Fragment]bool {
	out := map[*encodecache.Fragment]bool{}
	for f := range e.Parts() {
		out[f] = true
	}
	return out
}

// Clients in two places share the endpoints; only the headers are each one's own.
func TestPlacesShareChunks(t *testing.T) {
	tables := NewTables()
	table := (&endpointTables{}).next(booksEndpoints(3000))
	from := func(zone string) *classes.Assignment {
		order := gen.Ordering{Near: true, Anywhere: true, From: value.Locality{Region: "r1", Zone: zone}}
		return tables.Get(Key{Name: "a", Selection: Selection{Service: booksKey(), Port: "http"}, Order: order})
	}
	here, there := from("z0"), from("z1")
	if here == there || here != from("z0") {
		t.Fatal("an Assignment is one pointer for equal inputs alone")
	}
	shared, all := 0, parts(there.Entry(table))
	for f := range parts(here.Entry(table)) {
		if all[f] {
			shared++
		}
	}
	if want := len(all) - 4; shared != want {
		t.Errorf("%d parts shared of %d, want %d", shared, len(all), want)
	}
}

func TestEqualSetsGiveOneEntry(t *testing.T) {
	var tables endpointTables
	a := booksAssignment(gen.Ordering{}, nil)
	old := tables.next(booksEndpoints(100))
	first := a.Entry(old)
	new := tables.next(booksEndpoints(101))
	second := a.Entry(new)
	if a.Entry(old) != first || a.Entry(new) != second || first == second {
		t.Error("one set has two Entries")
	}
	empty := tables.next(nil)
	if len(readAssignment(t, a.Entry(empty)).GetEndpoints()) != 0 {
		t.Error("no endpoints")
	}
}

// Those who ask at the same time get the same Entry.
func TestConcurrentCallersShareAnEntry(t *testing.T) {
	tables := NewTables()
	table := (&endpointTables{}).next(booksEndpoints(2000))
	got := make([]*encodecache.Entry, 8)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			got[i] = tables.Get(Key{Name: "a", Selection: Selection{Service: booksKey(), Port: "http"}}).Entry(table)
		})
	}
	wg.Wait()
	for _, e := range got {
		if e != got[0] {
			t.Error("two Entries")
		}
	}
}

// One of 10,000 endpoints changes.
func BenchmarkOneEndpointOf10000(b *testing.B) {
	var tables endpointTables
	a := booksAssignment(gen.Ordering{}, nil)
	eps := booksEndpoints(10000)
	a.Entry(tables.next(eps))
	sets := make([]*snapshot.EndpointTable, 64)
	for i := range sets {
		eps = slices.Clone(eps)
		e := *eps[i*100]
		e.Weight++
		eps[i*100] = &e
		sets[i] = tables.next(eps)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		a.Entry(sets[i%len(sets)])
		i++
	}
}

// All of 10,000 endpoints are encoded.
func BenchmarkAll10000Endpoints(b *testing.B) {
	table := (&endpointTables{}).next(booksEndpoints(10000))
	b.ReportAllocs()
	for b.Loop() {
		booksAssignment(gen.Ordering{}, nil).Entry(table)
	}
}
