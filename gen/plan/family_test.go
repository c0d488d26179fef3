package plan

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestMembersEqualScratch is invariant I1 for families: what a namespace has, made as a difference from the outsider
// and brought from change to change with it, is what it has if it is made by itself from nothing. Proxies of all kinds
// stand in namespaces that own services and rules, to which some are exported, and that have nothing.
func TestMembersEqualScratch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newMesh(t)
		defer m.stop()
		for _, ns := range []string{"a", "b", "c", "root"} {
			for kind := range 3 {
				m.attach(ns, kind)
			}
		}
		late := []string{"d", "e"}
		t.Repeat(map[string]func(*rapid.T){"": m.checkSome, "batch": m.batch, "comes": func(t *rapid.T) {
			if len(late) > 0 {
				m.attach(late[0], rapid.IntRange(0, 2).Draw(t, "kind"))
				late = late[1:]
			}
		}})
		m.check(t)
	})
}

// TestMembersShareChunks: whatever happened, what a namespace has in common with the outsider are the same chunks.
func TestMembersShareChunks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newMesh(t)
		defer m.stop()
		for _, ns := range []string{"a", "b", "c", "d"} {
			m.attach(ns, 0)
		}
		t.Repeat(map[string]func(*rapid.T){"": m.checkShared, "batch": m.batch})
	})
}

// attach connects a proxy of one of three kinds.
func (m *meshMachine) attach(namespace string, kind int) { m.attachApp(namespace, "one", kind) }

// attachApp is attach for a workload of an app.
func (m *meshMachine) attachApp(namespace, app string, kind int) {
	m.nextID++
	p := &proxy.Proxy{ID: fmt.Sprint("p", m.nextID), Namespace: namespace,
		Addresses: []string{fmt.Sprint("10.0.0.", m.nextID)}, ClusterID: "Kubernetes",
		Labels: proxy.PackLabels(value.Labels{"app": app})}
	p.Traits.IPv4, p.Traits.Filters = true, value.AllFilters
	switch kind {
	case 1:
		p.Traits.Interception = value.NoInterception
	case 2:
		p.Traits.Type = value.Proxyless
	}
	m.proxies[m.nextID] = p
	m.connect(p)
}

// checkShared: a chunk of a member that has what a chunk of the outsider has is that chunk.
func (m *meshMachine) checkShared(t *rapid.T) {
	m.settle(t)
	for _, f := range m.planner.families {
		for _, bs := range m.planner.bases {
			if bs.family == f {
				sharesChunks(t, "clusters", bs.base.clusters, f.outsider.clusters)
				sharesChunks(t, "listeners", bs.base.listeners, f.outsider.listeners)
				sharesChunks(t, "assignments", bs.base.assignments, f.outsider.assignments)
			}
		}
	}
}

func sharesChunks[V comparable](t *rapid.T, what string, of, with chunked.Map[V]) {
	for c := range of.Chunks() {
		for o := range with.Chunks() {
			if c != o && c.Equal(o) {
				t.Fatalf("%s from %s on are a chunk of their own, though the outsider has the same", what, c.Keys()[0])
			}
		}
	}
}
