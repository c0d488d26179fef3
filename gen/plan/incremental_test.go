package plan

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	meshconfig "istio.io/api/mesh/v1alpha1"
	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// TestIncrementalEqualsScratch is invariant I1 for planning: whatever happened, what each proxy has is what a planner
// that starts now would give it, and every part of it tells from which objects it was made, all of which are there.
// Objects of all kinds come, change and go in random order and in random batches.
func TestIncrementalEqualsScratch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newMesh(t)
		defer m.stop()
		t.Repeat(map[string]func(*rapid.T){"": m.checkSome, "batch": m.batch, "proxy": m.proxy})
		m.check(t)
	})
}

// meshMachine is a random mesh with the planner under test.
type meshMachine struct {
	state   snapshottest.Batch // everything that is there
	builder *snapshot.Builder
	planner *Planner
	sink    *recorder
	proxies map[uint64]*proxy.Proxy
	nextID  uint64
	stop    func()
	skipped int // changes since the last comparison with a planner that starts anew
}

func newMesh(t *rapid.T) *meshMachine {
	m := &meshMachine{sink: newRecorder(), proxies: map[uint64]*proxy.Proxy{}}
	m.planner, m.stop = start(m.sink)
	m.builder = snapshot.NewBuilder(m.planner)
	m.state = snapshottest.Batch{
		Mesh: testMesh(0), Services: map[value.ServiceKey]*value.Service{},
		VirtualServices:  map[value.ObjectKey]*value.VirtualService{},
		DestinationRules: map[value.ObjectKey]*value.DestinationRule{}, Gateways: map[value.ObjectKey]*value.Gateway{},
		Sidecars:    map[value.ObjectKey]*value.Sidecar{},
		Projections: map[value.ServiceKey]*value.Projection{}, Endpoints: map[value.ServiceKey][]*value.Endpoint{},
		Workloads: map[string]*value.Workload{}, Objects: map[value.ObjectKey]value.Value{},
	}
	snapshottest.Apply(m.builder, &snapshottest.Batch{Mesh: m.state.Mesh})
	return m
}

func start(sink classes.Sink) (*Planner, func()) { return startOf(sink, false) }

// startApart returns start with a planner that makes every scope by itself, from nothing.
func startApart(sink classes.Sink) (*Planner, func()) { return startOf(sink, true) }

func startOf(sink classes.Sink, apart bool) (*Planner, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	p := NewPlanner(NewTables(), sink, Options{Now: time.Now, After: time.After, Log: slog.Default()})
	p.apart = apart
	done := make(chan struct{})
	go func() { p.Run(ctx); close(done) }()
	return p, func() { cancel(); <-done }
}

func testMesh(variant int) *value.Mesh {
	c := &meshconfig.MeshConfig{ProxyListenPort: 15001, ProxyInboundListenPort: 15006, RootNamespace: "root",
		TrustDomain: "cluster.local",
		OutboundTrafficPolicy: &meshconfig.MeshConfig_OutboundTrafficPolicy{
			Mode: meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY,
		}}
	c.ExtensionProviders = []*meshconfig.MeshConfig_ExtensionProvider{
		{Name: "web", Provider: &meshconfig.MeshConfig_ExtensionProvider_EnvoyExtAuthzHttp{
			EnvoyExtAuthzHttp: &meshconfig.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationHttpProvider{
				Service: "one.a.svc.cluster.local", Port: 80}}},
		{Name: "grpc", Provider: &meshconfig.MeshConfig_ExtensionProvider_EnvoyExtAuthzGrpc{
			EnvoyExtAuthzGrpc: &meshconfig.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationGrpcProvider{
				Service: "b/three.b.svc.cluster.local", Port: 80}}},
	}
	switch variant {
	case 1:
		c.OutboundTrafficPolicy.Mode = meshconfig.MeshConfig_OutboundTrafficPolicy_REGISTRY_ONLY
	case 2:
		c.OutboundTrafficPolicy.Mode = meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY_DYNAMIC_DNS
	}
	return istio.Mesh(c, "cluster.local", "Kubernetes")
}

func pick(t *rapid.T, what string, from ...string) string {
	return rapid.SampledFrom(from).Draw(t, what)
}

func namespace(t *rapid.T) string { return pick(t, "namespace", "a", "b", "root") }

// host returns one of a few, so that objects meet: services of namespaces, a name without a dot, external hosts.
func host(t *rapid.T) string {
	return pick(t, "host", "one.a.svc.cluster.local", "two.a.svc.cluster.local", "three.b.svc.cluster.local",
		"one.b.svc.cluster.local", "ext.example.com", "one", "deep.ext.example.com")
}

func hostOrPattern(t *rapid.T) string {
	if rapid.IntRange(0, 4).Draw(t, "pattern") == 0 {
		return pick(t, "pattern", "*.example.com", "*.a.svc.cluster.local", "*.ext.example.com", "*", "*xt.example.com")
	}
	return host(t)
}

func exportTo(t *rapid.T, ns string) value.Visibility {
	return value.NewVisibility(rapid.SampledFrom([][]string{nil, {"."}, {"*"}, {"a"}, {"c"}, {"b", "."}}).Draw(t, "exportTo"),
		nil, ns)
}

// batch changes a few objects at once.
func (m *meshMachine) batch(t *rapid.T) {
	b := &snapshottest.Batch{
		Services: map[value.ServiceKey]*value.Service{}, VirtualServices: map[value.ObjectKey]*value.VirtualService{},
		DestinationRules: map[value.ObjectKey]*value.DestinationRule{},
		Gateways:         map[value.ObjectKey]*value.Gateway{}, Sidecars: map[value.ObjectKey]*value.Sidecar{},
		Projections: map[value.ServiceKey]*value.Projection{},
		Endpoints:   map[value.ServiceKey][]*value.Endpoint{}, Workloads: map[string]*value.Workload{},
		Objects: map[value.ObjectKey]value.Value{},
	}
	for range rapid.IntRange(1, 4).Draw(t, "changes") {
		m.change(t, b)
	}
	if b.Mesh != nil {
		m.state.Mesh = b.Mesh
	}
	merge(m.state.Services, b.Services)
	merge(m.state.VirtualServices, b.VirtualServices)
	merge(m.state.DestinationRules, b.DestinationRules)
	merge(m.state.Gateways, b.Gateways)
	merge(m.state.Sidecars, b.Sidecars)
	merge(m.state.Projections, b.Projections)
	merge(m.state.Workloads, b.Workloads)
	for k, e := range b.Endpoints {
		m.state.Endpoints[k] = e
	}
	for k, o := range b.Objects {
		if m.state.Objects[k] = o; o == nil {
			delete(m.state.Objects, k)
		}
	}
	snapshottest.Apply(m.builder, b)
}

func merge[K comparable, V any](into, from map[K]*V) {
	for k, v := range from {
		if v == nil {
			delete(into, k)
		} else {
			into[k] = v
		}
	}
}

func (m *meshMachine) change(t *rapid.T, b *snapshottest.Batch) {
	ns, gone := namespace(t), rapid.IntRange(0, 3).Draw(t, "gone") == 0
	meta := value.Meta{Namespace: ns, Name: pick(t, "name", "x", "y"),
		Created: int64(rapid.IntRange(0, 3).Draw(t, "created"))}
	object := func(kind value.Kind) value.ObjectKey {
		return value.ObjectKey{Kind: kind, Namespace: ns, Name: meta.Name}
	}
	switch pick(t, "kind", "service", "service", "virtualservice", "virtualservice", "rule", "gateway", "sidecar",
		"peers", "peers", "authorization", "authorization", "tokens", "endpoints", "workload", "mesh") {
	case "service":
		k := value.ServiceKey{Host: host(t), Namespace: ns}
		b.Services[k] = nil
		if !gone {
			b.Services[k] = randomService(t, k, meta)
		}
	case "virtualservice":
		b.VirtualServices[object(value.KindVirtualService)] = nil
		if !gone {
			b.VirtualServices[object(value.KindVirtualService)] = randomVirtualService(t, meta)
		}
	case "rule":
		b.DestinationRules[object(value.KindDestinationRule)] = nil
		if !gone {
			b.DestinationRules[object(value.KindDestinationRule)] = randomRule(t, meta)
		}
	case "gateway":
		b.Gateways[object(value.KindGateway)] = nil
		if !gone {
			b.Gateways[object(value.KindGateway)] = randomGateway(t, meta)
		}
	case "sidecar":
		b.Sidecars[object(value.KindSidecar)] = nil
		if !gone {
			b.Sidecars[object(value.KindSidecar)] = randomSidecar(t, meta)
		}
	case "peers":
		b.Objects[object(value.KindPeerAuthentication)] = nil
		if !gone {
			b.Objects[object(value.KindPeerAuthentication)] = randomPeers(t, meta)
		}
	case "tokens":
		b.Objects[object(value.KindRequestAuthentication)] = nil
		if !gone {
			b.Objects[object(value.KindRequestAuthentication)] = &value.RequestAuthentication{Meta: meta,
				Rules: []value.TokenRule{{Issuer: pick(t, "issuer", "i", "j")}}}
		}
	case "authorization":
		b.Objects[object(value.KindAuthorizationPolicy)] = nil
		if !gone {
			b.Objects[object(value.KindAuthorizationPolicy)] = randomAuthorization(t, meta)
		}
	case "endpoints":
		k := value.ServiceKey{Host: host(t), Namespace: ns}
		b.Endpoints[k] = randomEndpoints(t, ns)
		b.Projections[k] = projection(b.Endpoints[k])
	case "workload":
		a := pick(t, "address", "10.0.0.1", "10.0.0.2")
		b.Workloads[a] = nil
		if !gone {
			b.Workloads[a] = &value.Workload{Namespace: ns, Name: "pod", Addresses: []string{a},
				Pod: rapid.Bool().Draw(t, "pod"), Ports: map[string]uint32{"p80": 8080},
				Labels: value.Labels{"app": pick(t, "app", "one", "two")}}
		}
	case "mesh":
		b.Mesh = testMesh(rapid.IntRange(0, 2).Draw(t, "mesh"))
	}
}

// proxy connects one, or disconnects one.
func (m *meshMachine) proxy(t *rapid.T) {
	if ids := slices.Sorted(maps.Keys(m.proxies)); len(ids) > 3 {
		m.planner.Detach(ids[0])
		m.sink.forget(ids[0])
		delete(m.proxies, ids[0])
		return
	}
	m.nextID++
	p := &proxy.Proxy{ID: fmt.Sprint("p", m.nextID), Namespace: namespace(t),
		Addresses: []string{pick(t, "ip", "10.0.0.1", "10.0.0.2", "10.0.0.9")},
		ClusterID: "Kubernetes",
		Labels:    proxy.PackLabels(value.Labels{"app": pick(t, "app", "one", "two"), "own": fmt.Sprint(m.nextID)})}
	p.Traits.Interception = rapid.SampledFrom([]value.Interception{value.Redirect, value.Redirect, value.TProxy,
		value.NoInterception}).Draw(t, "interception")
	p.Traits.IPv4, p.Traits.Filters = true, rapid.SampledFrom([]value.Filters{0, value.AllFilters}).Draw(t, "filters")
	p.Traits.Type = rapid.SampledFrom([]value.NodeType{value.SidecarProxy, value.SidecarProxy, value.Router,
		value.Proxyless}).Draw(t, "type")
	m.proxies[m.nextID] = p
	m.connect(p)
}

// checkSome is check after every fifth change: a planner that starts now costs more than all of them. Each change is
// planned by itself.
func (m *meshMachine) checkSome(t *rapid.T) {
	if m.skipped++; m.skipped < 5 {
		m.settle(t)
		return
	}
	m.skipped = 0
	m.check(t)
}

// connect attaches a proxy, which may ask for the name table once it is answered.
func (m *meshMachine) connect(p *proxy.Proxy) {
	m.planner.Attach(m.nextID, p)
	if resolves(m.nextID) {
		_ = m.planner.Barrier(context.Background())
		m.planner.Want(m.nextID, xdstype.NameTable)
	}
}

// resolves reports whether a proxy asks for the name table: a few do, so that at times nobody does.
func resolves(id uint64) bool { return id%5 == 0 }

// check holds every proxy's ResourceSet against that of a planner which starts now.
func (m *meshMachine) check(t *rapid.T) {
	fresh := newRecorder()
	planner, stop := startApart(fresh)
	defer stop()
	builder := snapshot.NewBuilder(planner)
	for id, p := range m.proxies {
		planner.Attach(id, p)
	}
	state := m.state
	snapshottest.Apply(builder, &state)
	m.settle(t)
	if err := planner.Barrier(context.Background()); err != nil {
		t.Fatal(err)
	}
	for id := range m.proxies {
		if resolves(id) {
			planner.Want(id, xdstype.NameTable)
		}
	}
	if err := planner.Barrier(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*Planner{m.planner, planner} {
		if f := p.tables.Faults(); f.Panics > 0 {
			t.Fatalf("%d panics were caught", f.Panics)
		}
	}
	for id, p := range m.proxies {
		got, want := m.sink.describe(id, m.builder.View().Endpoints), fresh.describe(id, builder.View().Endpoints)
		if d := difference(got, want); d != "" {
			t.Fatalf("proxy %s in %s: incremental and from scratch differ: %s", p.ID, p.Namespace, d)
		}
		if u := untraced(m.sink.sets[m.sink.classes[id]], m.builder.View().Endpoints, m.exists); u != "" {
			t.Fatalf("proxy %s in %s: %s", p.ID, p.Namespace, u)
		}
	}
}

// settle waits until all that happened is planned.
func (m *meshMachine) settle(t *rapid.T) {
	if err := m.planner.Barrier(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// difference names the first resource that differs.
func difference(got, want map[string]string) string {
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[k]; !ok {
			return k + " is missing"
		} else if g != want[k] {
			return k + " has other content"
		}
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[k]; !ok {
			return k + " should be gone"
		}
	}
	return ""
}

// recorder is a Sink that remembers what each proxy has.
type recorder struct {
	// Owned by the planner's goroutine between barriers.
	classes map[uint64]*classes.Class
	sets    map[*classes.Class]*classes.ResourceSet
}

func newRecorder() *recorder {
	return &recorder{classes: map[uint64]*classes.Class{}, sets: map[*classes.Class]*classes.ResourceSet{}}
}

func (r *recorder) Assigned(id uint64, c *classes.Class, w *classes.ResourceSet) {
	r.classes[id], r.sets[c] = c, w
}

func (r *recorder) Advanced(sets map[*classes.Class]*classes.ResourceSet, _ classes.Endpoints) {
	maps.Copy(r.sets, sets)
}

func (r *recorder) EndpointsChanged(*snapshot.EndpointTable, []value.ServiceKey) {}

func (r *recorder) forget(uint64) {}

func (r *recorder) describe(id uint64, t *snapshot.EndpointTable) map[string]string {
	out, w := map[string]string{}, r.sets[r.classes[id]]
	add := func(kind string, s classes.Section) {
		for name, e := range s.All() {
			out[kind+" "+name] = e.Version()
		}
	}
	add("cluster", w.Sections.Of(xdstype.Cluster))
	add("listener", w.Sections.Of(xdstype.Listener))
	add("route", w.Sections.Of(xdstype.Route))
	add("name table", w.Sections.Of(xdstype.NameTable))
	for name, a := range w.Assignments.All() {
		out["endpoints "+name] = entryVersion(a.Entry(t))
		if !slices.Contains(w.AssignmentsOf(a.Service), a) {
			out["group of "+name] = "lacks it"
		}
	}
	return out
}

func entryVersion(e *encodecache.Entry) string { return e.Version() }
