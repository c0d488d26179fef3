package plan

import (
	"fmt"
	"testing"

	networking "istio.io/api/networking/v1alpha3"
	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestSidecarsEqualScratch is invariant I1 for what scopes of Sidecar objects share in a step: workloads of two apps in
// three namespaces have Sidecars that import hosts, patterns and namespaces, that exclude some, that have listeners of
// their own or a policy for what is unknown, and mostly VirtualServices change.
func TestSidecarsEqualScratch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newMesh(t)
		defer m.stop()
		for _, ns := range []string{"a", "b", "c"} {
			for i, app := range []string{"one", "two"} {
				m.sidecarOf(t, ns, app)
				m.attachApp(ns, app, 0)
				m.attachApp(ns, app, i+1)
			}
		}
		for range 3 {
			m.batch(t)
		}
		t.Repeat(map[string]func(*rapid.T){"": m.checkSome, "batch": m.batch, "routes": m.routes, "more routes": m.routes,
			"sidecar": func(t *rapid.T) { m.sidecarOf(t, pick(t, "of", "a", "b", "c"), pick(t, "app", "one", "two")) }})
		m.check(t)
	})
}

// sidecarOf replaces the Sidecar of an app.
func (m *meshMachine) sidecarOf(t *rapid.T, ns, app string) {
	meta := value.Meta{Namespace: ns, Name: "of-" + app}
	s := randomSidecar(t, meta)
	if rapid.IntRange(0, 3).Draw(t, "listeners") > 0 {
		spec := &networking.Sidecar{Egress: []*networking.IstioEgressListener{{
			Hosts: rapid.SliceOfN(rapid.Custom(egressHost), 1, 5).Draw(t, "hosts")}}}
		if rapid.IntRange(0, 2).Draw(t, "all") == 0 {
			spec.Egress[0].Hosts = append(spec.Egress[0].Hosts, "*/*")
		}
		if rapid.IntRange(0, 3).Draw(t, "policy") == 0 {
			spec.OutboundTrafficPolicy = &networking.OutboundTrafficPolicy{
				Mode: networking.OutboundTrafficPolicy_REGISTRY_ONLY}
		}
		s = &value.Sidecar{Meta: meta, SidecarSettings: istio.Sidecar(spec)}
	}
	s.Workload = value.Labels{"app": app}
	b := &snapshottest.Batch{Sidecars: map[value.ObjectKey]*value.Sidecar{
		{Kind: value.KindSidecar, Namespace: ns, Name: meta.Name}: s}}
	merge(m.state.Sidecars, b.Sidecars)
	snapshottest.Apply(m.builder, b)
}

// routes changes VirtualServices alone.
func (m *meshMachine) routes(t *rapid.T) {
	b := &snapshottest.Batch{VirtualServices: map[value.ObjectKey]*value.VirtualService{}}
	for range rapid.IntRange(1, 2).Draw(t, "changes") {
		meta := value.Meta{Namespace: namespace(t), Name: pick(t, "name", "x", "y"),
			Created: int64(rapid.IntRange(0, 3).Draw(t, "created"))}
		k := value.ObjectKey{Kind: value.KindVirtualService, Namespace: meta.Namespace, Name: meta.Name}
		vs := randomVirtualService(t, meta)
		if had := m.state.VirtualServices[k]; had != nil && len(had.HTTP) > 0 && len(vs.HTTP) > 0 {
			edited := *had // the same destinations, so that nothing but virtual hosts differs
			edited.Routing.HTTP = []*value.HTTPRoute{{}}
			*edited.Routing.HTTP[0] = *had.HTTP[0]
			edited.Routing.HTTP[0].Matches = []*value.HTTPMatch{{Client: value.Client{
				Labels: value.Labels{"app": pick(t, "source", "one", "two")}}}}
			if rapid.Bool().Draw(t, "by namespace") {
				edited.Routing.HTTP[0].Matches[0].Namespace = pick(t, "source namespace", "a", "b", "c")
			}
			vs = &edited
		}
		b.VirtualServices[k] = vs
	}
	merge(m.state.VirtualServices, b.VirtualServices)
	snapshottest.Apply(m.builder, b)
}

// lastChange is the last change that a Builder has published.
type lastChange struct {
	old, now *snapshot.Snapshot
	delta    *snapshot.Delta
}

// Publish implements snapshot.Listener.
func (c *lastChange) Publish(v *snapshot.View, d *snapshot.Delta) {
	c.old, c.now, c.delta = c.now, v.Snapshot, d
}

// TestSidecarsShareAnEdit: what an edit of a VirtualService makes of the scopes of Sidecars that import different hosts
// is worked out once for all that import its host, and once for the others; and those that import the same have the
// same chunks after it, too.
func TestSidecarsShareAnEdit(t *testing.T) {
	const sidecars = 40
	last := &lastChange{}
	builder, tables := snapshot.NewBuilder(last), NewTables()
	b := &snapshottest.Batch{Mesh: testMesh(0), Services: map[value.ServiceKey]*value.Service{},
		VirtualServices: map[value.ObjectKey]*value.VirtualService{}}
	host := func(i int) string { return fmt.Sprintf("s%d.a.svc.cluster.local", i) }
	for i := range sidecars {
		k := value.ServiceKey{Host: host(i), Namespace: "a"}
		b.Services[k] = &value.Service{ServiceKey: k, Name: fmt.Sprint("s", i), Export: value.Visibility{Public: true},
			Addresses: []string{fmt.Sprint("10.1.0.", i+1)},
			Ports:     []*value.Port{{Name: "http", Number: 80, Protocol: value.HTTP}}}
	}
	route := func(b *snapshottest.Batch, prefix string) {
		vs := &value.VirtualService{Meta: value.Meta{Namespace: "a", Name: "r"}, Export: value.Visibility{Public: true},
			Routing: istio.Routing(&networking.VirtualService{Hosts: []string{host(0)}, Gateways: []string{"mesh"},
				Http: []*networking.HTTPRoute{{
					Match: []*networking.HTTPMatchRequest{{Uri: &networking.StringMatch{
						MatchType: &networking.StringMatch_Prefix{Prefix: prefix}}}},
					Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: host(0)}}},
				}}})}
		b.VirtualServices = map[value.ObjectKey]*value.VirtualService{
			{Kind: value.KindVirtualService, Namespace: "a", Name: "r"}: vs}
		snapshottest.Apply(builder, b)
	}
	route(b, "/first")
	var bases []*base
	for i := range sidecars {
		imports := []string{"a/" + host(0), "a/" + host(1+i/2)}
		if i >= sidecars/2 {
			imports = imports[1:]
		}
		meta := value.Meta{Namespace: fmt.Sprint("n", i), Name: "x"}
		spec := &networking.Sidecar{Egress: []*networking.IstioEgressListener{{Hosts: imports}}}
		bases = append(bases, tables.newBase(last.now, scope.Facts{Namespace: meta.Namespace,
			Sidecar: &value.Sidecar{Meta: meta, SidecarSettings: istio.Sidecar(spec)}, Traits: value.Traits{IPv4: true}}, nil))
	}
	route(&snapshottest.Batch{}, "/second")
	affected := scope.AffectedBy(last.old, last.now, last.delta)
	step := tables.newHostsStep(affected, last.old, last.now)
	if step == nil {
		t.Fatal("an edit of a route is said to concern more than virtual hosts")
	}
	for i, had := range bases {
		bases[i] = step.advance(had)
		if changed := bases[i] != had; changed != (i < sidecars/2) {
			t.Errorf("sidecar %d: changed is %v", i, changed)
		}
		hosts, want := bases[i].hosts.get(80).Hosts(), tables.advance(had, last.now, affected).hosts.get(80).Hosts()
		hosts.Diff(want, func(c chunked.Change[*encodecache.Fragment]) { t.Errorf("sidecar %d: %s differs", i, c.Key) })
		if i%2 == 1 && !hosts.Same(bases[i-1].hosts.get(80).Hosts()) {
			t.Errorf("sidecars %d and %d import the same, and have it in chunks of their own", i-1, i)
		}
	}
	if kept := step.of(value.Traits{IPv4: true}).ports[80].Len(); kept != 2 {
		t.Errorf("the edit is kept for %d kinds of answers, want 2", kept)
	}
}
