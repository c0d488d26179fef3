package plan

import (
	"fmt"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// BenchmarkTouchManyHosts is an edit of one VirtualService with many hosts: what it touches is found in a time that
// grows with the hosts, not with their square.
func BenchmarkTouchManyHosts(b *testing.B) {
	key := value.ObjectKey{Kind: value.KindVirtualService, Namespace: "shop", Name: "many"}
	for _, hosts := range []int{1000, 4000} {
		b.Run(fmt.Sprintf("hosts=%d", hosts), func(b *testing.B) {
			mesh := func(weight int32) *snapshot.Snapshot {
				spec := &networking.VirtualService{Gateways: []string{scope.MeshGateway}, Http: []*networking.HTTPRoute{{
					Route: []*networking.HTTPRouteDestination{{Weight: weight,
						Destination: &networking.Destination{Host: booksKey().Host}}}}}}
				for i := range hosts {
					spec.Hosts = append(spec.Hosts, fmt.Sprintf("h%d.example.com", i))
				}
				vs := &value.VirtualService{Meta: value.Meta{Namespace: "shop", Name: "many"},
					Export: value.Visibility{Public: true}, Routing: istio.Routing(spec)}
				return bookshop(func(b *snapshottest.Batch) {
					b.VirtualServices = map[value.ObjectKey]*value.VirtualService{key: vs}
				})
			}
			old, now := mesh(1), mesh(2)
			delta := &snapshot.Delta{}
			delta.Objects.Add(key, old.Object(key), now.Object(key))
			b.ReportAllocs()
			for b.Loop() {
				if n := len(scope.AffectedBy(old, now, delta).Routes); n < hosts {
					b.Fatalf("%d virtual hosts touched, want %d", n, hosts)
				}
			}
		})
	}
}
