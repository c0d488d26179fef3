package plan

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/gen/plan/outbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestReachIsAllThatIsSeen holds what a scope finds by its imports against what it sees of a walk over the whole mesh,
// after random changes.
func TestReachIsAllThatIsSeen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newMesh(t)
		defer m.stop()
		tables := NewTables()
		t.Repeat(map[string]func(*rapid.T){"batch": m.batch, "": func(t *rapid.T) {
			n := m.builder.View().Snapshot
			meta := value.Meta{Namespace: namespace(t), Name: "asked"}
			f := scope.Facts{Namespace: meta.Namespace, Sidecar: randomSidecar(t, meta), Traits: value.Traits{IPv4: true}}
			sc := scope.New(f, value.Labels{"app": "one"}, tables.trims)
			checkReach(t, n, sc)
			checkSelected(t, n, meta.Namespace)
			f.Sidecar = nil
			for _, sc := range []*scope.Scope{sc, scope.New(f, value.Labels{"app": "one"}, tables.trims)} {
				checkPorts(t, n, sc, tables)
			}
		}})
	})
}

// checkSelected holds what selects a workload by the index of labels against a walk.
func checkSelected(t *rapid.T, n *snapshot.Snapshot, ns string) {
	labels := value.Labels{"app": pick(t, "asked", "one", "two", "three"), "own": "1"}
	var services, found []value.ServiceKey
	for svc := range n.ServicesIn(ns) {
		if svc.Registry == value.RegistryKubernetes && len(svc.Selector) > 0 && labels.Contains(svc.Selector) {
			services = append(services, svc.ServiceKey)
		}
	}
	for svc := range n.ServicesSelecting(ns, labels) {
		if n.Service(svc.ServiceKey) != svc {
			t.Fatalf("%s: an old version selects", svc.ServiceKey)
		}
		found = append(found, svc.ServiceKey)
	}
	if slices.SortFunc(found, func(a, b value.ServiceKey) int {
		return strings.Compare(a.Host,
			b.Host)
	}); !slices.Equal(found, services) {
		t.Fatalf("%v: services %v, want %v", labels, found, services)
	}
	var sidecars, matched int
	for s := range n.SidecarsIn(ns) {
		if len(s.Selector()) > 0 && labels.Contains(s.Selector()) {
			sidecars++
		}
	}
	for range n.SidecarsSelecting(ns, labels) {
		matched++
	}
	if matched != sidecars {
		t.Fatalf("%v: %d Sidecars select it, want %d", labels, matched, sidecars)
	}
}

func checkReach(t *rapid.T, n *snapshot.Snapshot, sc *scope.Scope) {
	hosts := sc.Hosts(n)
	for svc := range n.Services() {
		if _, ok := hosts[svc.Host]; !ok && sc.Service(n, svc.Host) != nil {
			t.Fatalf("%v sees %s, which is not in reach: %v", sc.Sidecar, svc.Host, hosts)
		}
	}
	for vs := range n.VirtualServices() {
		if !sc.SeesVirtualService(vs) {
			continue
		}
		for _, h := range vs.Hosts {
			if _, ok := hosts[h]; !ok {
				t.Fatalf("%v sees %s of VirtualService %s/%s, which is not in reach: %v", sc.Sidecar, h, vs.Namespace,
					vs.Name, hosts)
			}
		}
	}
}

// checkPorts holds the services that claim a port against all that the scope sees there.
func checkPorts(t *rapid.T, n *snapshot.Snapshot, sc *scope.Scope, tables *Tables) {
	v := tables.View(n, sc)
	for _, port := range []int{80, 443, 8080, 9000} {
		var first []outbound.ServicePort
		serves := false
		for svc := range n.Services() {
			if s := sc.Service(n, svc.Host); s != nil && s.PortByNumber(port) != nil {
				p := s.PortByNumber(port).Protocol
				serves = serves || p.IsHTTP() || p == value.Auto && s.SharesAddress()
			}
			s, p := v.Seen(svc, port)
			if p == nil {
				continue
			}
			class := snapshot.ClassOn(svc, port)
			if class != 0 && !slices.Contains(slices.Collect(sc.Candidates(n, port, class)), svc) {
				t.Fatalf("%v: %s is no candidate of class %c on %d", sc.Sidecar, svc.ServiceKey, class, port)
			}
			if c := (outbound.PortOf(s, p)); p.Protocol.IsHTTP() && s.Resolution != value.Alias &&
				(len(first) == 0 || v.Before(c, first[0]) < 0) {
				first = []outbound.ServicePort{c}
			}
		}
		if got := v.FirstHTTP(port); len(got) != len(first) || len(got) > 0 && got[0] != first[0] {
			t.Fatalf("%v: first on %d is %v, want %v", sc.Sidecar, port, got, first)
		}
		if got := sc.ServesHTTP(n, port); got != serves {
			t.Fatalf("%v: HTTP on %d: %v, want %v", sc.Sidecar, port, got, serves)
		}
		checkMembers(t, n, port)
	}
}

// checkMembers holds the index of endpoints' addresses against a walk.
func checkMembers(t *rapid.T, n *snapshot.Snapshot, port int) {
	for _, address := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
		var want []value.ServiceKey
		for svc := range n.Services() {
			p := svc.PortByNumber(port)
			if p == nil || p.Protocol.IsHTTP() || p.Protocol == value.UDP || svc.Resolution == value.Alias ||
				!svc.ByMember() {
				continue
			}
			if slices.ContainsFunc(n.Projection(svc.ServiceKey).Inline,
				func(e *value.Endpoint) bool { return e.Serves(p) && e.Addresses[0] == address }) {
				want = append(want, svc.ServiceKey)
			}
		}
		var got []value.ServiceKey
		for svc := range n.WithMember(port, address) {
			if n.Service(svc.ServiceKey) != svc {
				t.Fatalf("%s: an old version has an endpoint at %s", svc.ServiceKey, address)
			}
			got = append(got, svc.ServiceKey)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("on %d at %s: %v, want %v", port, address, got, want)
		}
	}
}
