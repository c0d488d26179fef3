package plan

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestAlikeIsWhatEachWouldHave asks scopes of many forms for what they see of a host in a random mesh, by themselves
// and by way of what a scope that answers alike was told.
func TestAlikeIsWhatEachWouldHave(t *testing.T) {
	t.Parallel()
	hosts := []string{"one.a.svc.cluster.local", "two.a.svc.cluster.local", "three.b.svc.cluster.local",
		"one.b.svc.cluster.local", "ext.example.com", "one", "deep.ext.example.com", "*.example.com"}
	rapid.Check(t, func(t *rapid.T) {
		m := newMesh(t)
		defer m.stop()
		tables := NewTables()
		for range rapid.IntRange(4, 14).Draw(t, "batches") {
			m.batch(t)
		}
		n := m.builder.View().Snapshot
		var scopes []*scope.Scope
		for range 8 {
			meta := value.Meta{Namespace: namespace(t), Name: "asked"}
			labels := value.Labels{"app": pick(t, "app", "one", "two")}
			f := scope.Facts{Namespace: meta.Namespace, Traits: value.Traits{IPv4: true}, Labels: value.LabelsKey(labels)}
			if rapid.IntRange(0, 4).Draw(t, "explicit") > 0 {
				f.Sidecar = randomSidecar(t, meta)
			}
			scopes = append(scopes, scope.New(f, labels, tables.trims))
		}
		for _, host := range hosts {
			alike := &scope.Alike[string]{}
			for _, sc := range scopes {
				got := alike.Get(sc, func(sc *scope.Scope) string { return seenOf(tables, n, sc, host) })
				if want := seenOf(tables, n, sc, host); got != want {
					t.Fatalf("%+v in %s sees of %s\n%s\nwant\n%s", sc.Sidecar, sc.Namespace, host, got, want)
				}
			}
		}
	})
}

// seenOf returns all that virtual hosts of a host are made of in a scope.
func seenOf(tables *Tables, n *snapshot.Snapshot, sc *scope.Scope, host string) string {
	var out strings.Builder
	if svc := sc.Service(n, host); svc != nil {
		fmt.Fprintf(&out, "service %s with %d ports, rule %p, aliases %v\n", svc.ServiceKey, len(svc.Ports),
			sc.DestinationRule(n, svc),
			scope.Aliases(n, sc, svc))
	}
	for _, port := range []int{80, 8080} {
		if f := tables.VirtualHostOf(sc.OnPort(n, port, nil), host); f != nil {
			fmt.Fprintf(&out, "%d: %x\n", port, f.Sum())
		}
	}
	for vs := range n.VirtualServicesOfHost(host) {
		refused, routed := sc.Verdicts(vs, 80, scope.MeshGateway)
		fmt.Fprintf(&out, "%s: %v %q %v\n", vs.Name, sc.SeesVirtualService(vs), refused, routed)
	}
	for _, r := range tables.SniffedRoutes(n, sc, host) {
		fmt.Fprintf(&out, "%s: %s\n", r.Name(), r.Version())
	}
	return out.String()
}
