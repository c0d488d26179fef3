package plan

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/gen/plan/inbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/gen/plan/workload"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestMeshEditsMakeTheKeysThatReadThem: whatever one setting of the mesh's configuration becomes, the Keys that do not
// read it stay as they are: nothing is made anew but what stands here beside the setting.
func TestMeshEditsMakeTheKeysThatReadThem(t *testing.T) {
	want := map[string][]string{ // by the longest path that the setting is under
		"DomainSuffix": {"VirtualHostKey"}, "ClusterID": {}, "RootNamespace": {},
		"OutboundPort": {"VirtualOutboundKey"}, "InboundPort": {"InboundChainsKey", "InboundListenerKey"},
		"Detection": {"InboundListenerKey", "OutboundListenerKey"}, "Loopback": {"InboundClusterKey"},
		"InboundStat": {"InboundChainsKey"}, "ProxyProtocol": {"GatewayListenerKey"},
		"Outbound.Mode": {"CatchAllKey", "OutboundListenerKey", "VirtualOutboundKey"}, "Outbound.TLS": {},
		"HTTP":   {"GatewayChainKey", "InboundChainsKey", "OutboundListenerKey"},
		"Routes": {"VirtualHostKey"}, "Routes.CountAttempts": {"CatchAllKey", "VirtualHostKey"},
		"Connections": {"InboundClusterKey", "staticCluster"}, "Clusters": {"ClusterKey"},
		"Clusters.Stat": {"ClusterKey", "OutboundListenerKey"},
		"Peers":         {"InboundChainsKey"}, "Servers": {"GatewayChainKey"},
		"Access": {}, // nobody has a policy
	}
	m := newEditedMesh(t)
	if made := m.with(func(*value.Mesh) {}); len(made) < 10 {
		t.Fatalf("from nothing only %v are made", made)
	}
	got := map[string]map[string]struct{}{}
	for path, edit := range editsOf(reflect.ValueOf(testMesh(0)).Elem()) {
		path = strings.TrimPrefix(path, ".")
		under := ""
		for p := range want {
			if len(p) > len(under) && (path == p || strings.HasPrefix(path, p+".")) {
				under = p
			}
		}
		if got[under] == nil {
			got[under] = map[string]struct{}{}
		}
		for key := range m.with(func(mesh *value.Mesh) { edit(reflect.ValueOf(mesh).Elem()) }) {
			if got[under][key] = struct{}{}; !slices.Contains(want[under], key) {
				t.Errorf("%s: another %s is made", path, key)
			}
		}
	}
	for path, keys := range want {
		if all := slices.Sorted(maps.Keys(got[path])); !slices.Equal(all, keys) {
			t.Errorf("edits of %s make another %v, want %v", path, all, keys)
		}
	}
}

// editedMesh is a small mesh with a client of each type, and what is made for them.
type editedMesh struct {
	n      *snapshot.Snapshot
	mesh   *value.Mesh // as it is without an edit
	tables *Tables
	made   map[string]struct{} // types of the Keys that something was made of
	held   []any
}

func newEditedMesh(t *testing.T) *editedMesh {
	m := &editedMesh{tables: NewTables(), mesh: testMesh(0), n: meshOf(t, `
service one.a.svc.cluster.local a ip=10.0.0.1 port=80/HTTP,443/HTTPS,9000/TCP,9001/Auto
service two.b.svc.cluster.local b ip=10.0.0.2 port=80/HTTP
virtualservice a/one host=one.a.svc.cluster.local to=two.b.svc.cluster.local bind=mesh,gw/edge
gateway gw/edge app=edge server=80/HTTP/*;443/HTTPS/one.a.svc.cluster.local
`)}
	m.tables.faults.Hook(func(key any) { m.made[reflect.TypeOf(key).Name()] = struct{}{} })
	return m
}

// with makes everything for all clients after an edit of the mesh's configuration, and says of which Keys something had
// to be made. Nothing that was made is forgotten.
func (m *editedMesh) with(edit func(*value.Mesh)) map[string]struct{} {
	mesh := copyOf(reflect.ValueOf(testMesh(0))).Interface().(*value.Mesh)
	edit(mesh)
	mesh.Keep(m.mesh)
	n := withMesh(m.n, mesh)
	m.made = map[string]struct{}{}
	for _, traits := range []value.Traits{
		{Type: value.SidecarProxy, IPv4: true, Filters: value.AllFilters},
		{Type: value.Proxyless, IPv4: true}, {Type: value.Router, IPv4: true, Filters: value.AllFilters},
	} {
		labels := value.Labels{"app": "edge"}
		b := m.tables.newBase(n, scope.Facts{Namespace: "a", Traits: traits, Labels: value.LabelsKey(labels)}, labels)
		svc := n.Service(value.ServiceKey{Host: "one.a.svc.cluster.local", Namespace: "a"})
		own := &inbound.Facts{Traits: traits, Namespace: "a", Addresses: []string{"10.1.0.1"}}
		for _, p := range svc.Ports {
			own.Targets = append(own.Targets, workload.Target{Service: svc, Port: p, Number: p.Number})
		}
		m.held = append(m.held, b, m.tables.overlayOf(b, own, nil))
	}
	return m.made
}
