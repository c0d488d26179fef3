package plan

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/gen/plan/outbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestSubsetsTimesPortsAreBounded: a service of many ports with a DestinationRule of many subsets has its own clusters,
// and none of the subsets'; the rule is told of. One subset fewer than the bound allows has all of them.
func TestSubsetsTimesPortsAreBounded(t *testing.T) {
	const ports = 127
	mesh := func(subsets int) *snapshot.Snapshot {
		return bookshop(func(b *snapshottest.Batch) {
			svc := b.Services[booksKey()]
			svc.Ports = nil
			for i := range ports {
				svc.Ports = append(svc.Ports, &value.Port{Name: fmt.Sprint("p", i), Number: i + 1, Protocol: value.TCP})
			}
			spec := &networking.DestinationRule{}
			for i := range subsets {
				spec.Subsets = append(spec.Subsets, &networking.Subset{Name: fmt.Sprint("s", i)})
			}
			addRule(b, spec)
		})
	}
	tables := NewTables()
	var told []string
	tables.faults.Tell(func(o value.ObjectKey, list []checked.Fault) {
		for _, f := range list {
			told = append(told, o.String()+" "+f.Field+": "+f.Reason)
		}
	}, slog.New(slog.DiscardHandler))
	sc := scopeOf(tables, scope.Facts{Namespace: "shop"})
	most := outbound.MaxClusters/ports - 1
	for _, c := range []struct{ subsets, want int }{{most, ports * (1 + most)}, {most + 1, ports}} {
		n := mesh(c.subsets)
		clusters, _ := tables.ClustersOf(n, sc, n.Service(booksKey()))
		if len(clusters) != c.want {
			t.Errorf("%d subsets: %d clusters, want %d", c.subsets, len(clusters), c.want)
		}
	}
	want := fmt.Sprintf("DestinationRule shop/books spec.subsets: expected at most %d clusters", outbound.MaxClusters)
	if len(told) != 1 || !strings.HasPrefix(told[0], want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
