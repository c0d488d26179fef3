package plan

import (
	"context"
	"flag"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unique"

	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// everyEdit is set by whoever changes the rows: `go test ./gen/plan -run Rules -everyEdit` takes a minute, and with the
// race detector several.
var everyEdit = flag.Bool("everyEdit", false, "TestRulesCoverEveryField tries every edit, not every fifth")

// TestEveryKindHasARule: each kind whose objects enter Snapshots stands in one row of what depends on what, and each
// row says what comes of it.
func TestEveryKindHasARule(t *testing.T) {
	rows := map[value.Kind]int{}
	for _, r := range scope.Rules() {
		for _, k := range r.Kinds {
			rows[k]++
		}
		if r.Else == "" {
			t.Errorf("%v: the row does not say what else a change affects", r.Kinds)
		}
	}
	for _, k := range ingest.Kinds() {
		if n := rows[k.Name]; k.NotServed == "" && !k.Aside && n != 1 {
			t.Errorf("%s has %d rows, want 1", k.Name, n)
		}
		delete(rows, k.Name)
	}
	for k := range rows {
		t.Errorf("%s has a row and is no kind", k)
	}
}

// TestRulesCoverEveryField walks the rows: of each kind it takes objects away, puts them back, and edits every field of
// them, one by one. What clients of all sorts then have is what a planner that starts now gives them. A field that
// changes nothing for anybody has its row's word for it, but not all fields of a kind.
func TestRulesCoverEveryField(t *testing.T) {
	t.Parallel()
	m := newRuledMesh(t)
	for _, r := range scope.Rules() {
		for _, kind := range r.Kinds {
			subjects := m.subjectsOf(kind)
			if len(subjects) == 0 {
				t.Errorf("%s: no object to edit", kind)
			}
			edits, changes := 0, 0
			for _, s := range subjects {
				e, c := m.walk(s)
				edits, changes = edits+e, changes+c
			}
			t.Logf("%s: %d edits, of which %d change what a client has", kind, edits, changes)
			if inert := kind == value.KindNamespace; (changes == 0) != inert {
				t.Errorf("%s: %d of %d edits change what a client has", kind, changes, edits)
			}
		}
	}
}

// ruledMesh is a mesh with objects of all kinds, and a client of each sort.
type ruledMesh struct {
	t       *testing.T
	state   snapshottest.Batch
	builder *snapshot.Builder
	planner *Planner
	sink    *recorder
	clients map[uint64]*proxy.Proxy
	have    map[uint64]map[string]string // what the clients have of the mesh without an edit
}

// subject is an object that is edited.
type subject struct {
	name  string
	value reflect.Value                                // a pointer
	put   func(b *snapshottest.Batch, v reflect.Value) // the zero Value takes it away
}

func newRuledMesh(t *testing.T) *ruledMesh {
	m := &ruledMesh{t: t, sink: newRecorder(), clients: ruledClients()}
	planner, stop := start(m.sink)
	t.Cleanup(stop)
	m.planner, m.builder = planner, snapshot.NewBuilder(planner)
	m.state = ruledObjects()
	snapshottest.Apply(m.builder, &m.state)
	for id, p := range m.clients {
		planner.Attach(id, p)
	}
	m.have = m.settled(planner, m.sink, m.builder)
	return m
}

// settled returns what all clients have once everything is planned.
func (m *ruledMesh) settled(p *Planner, r *recorder, b *snapshot.Builder) map[uint64]map[string]string {
	m.t.Helper()
	if err := p.Barrier(context.Background()); err != nil {
		m.t.Fatal(err)
	}
	out := map[uint64]map[string]string{}
	for id := range m.clients {
		out[id] = r.describe(id, b.View().Endpoints)
	}
	return out
}

// walk edits one object in all ways. It counts the edits, and those that change what a client has.
func (m *ruledMesh) walk(s subject) (edits, changes int) {
	try := func(path string, v reflect.Value) {
		b, whole := &snapshottest.Batch{}, m.state
		s.put(b, v)
		s.put(&whole, v)
		edits++
		if m.try(s.name+path, b, whole) {
			changes++
		}
		back := &snapshottest.Batch{}
		s.put(back, s.value)
		snapshottest.Apply(m.builder, back)
		s.put(&m.state, s.value)
		again := m.settled(m.planner, m.sink, m.builder)
		for id, want := range m.have {
			if d := difference(again[id], want); d != "" {
				m.t.Errorf("%s%s and back again: client %s: %s", s.name, path, m.clients[id].ID, d)
			}
		}
	}
	try(" taken away", reflect.Value{})
	n := 0
	for path, edit := range editsOf(s.value) {
		if identity(path) || strings.HasSuffix(path, ".Addresses[less]") && strings.HasPrefix(path, ".Inline") {
			continue // no endpoint is without an address
		}
		if n++; !*everyEdit && n%5 != 0 {
			continue
		}
		v := copyOf(s.value)
		edit(v)
		try(path, v)
	}
	return edits, changes
}

// identity reports whether a field is part of an object's key, and so no other value can have the key.
func identity(path string) bool {
	return slices.Contains([]string{".ServiceKey.Host", ".ServiceKey.Namespace", ".Meta.Cluster", ".Meta.Namespace",
		".Meta.Name", ".Cluster"}, path)
}

// try makes one edit and holds what clients have then against what a planner that starts now gives them. It reports
// whether that is something else than before.
func (m *ruledMesh) try(what string, b *snapshottest.Batch, whole snapshottest.Batch) (changed bool) {
	snapshottest.Apply(m.builder, b)
	got := m.settled(m.planner, m.sink, m.builder)
	fresh := newRecorder()
	planner, stop := startApart(fresh)
	defer stop()
	builder := snapshot.NewBuilder(planner)
	snapshottest.Apply(builder, &whole)
	for id, p := range m.clients {
		planner.Attach(id, p)
	}
	want := m.settled(planner, fresh, builder)
	for id := range m.clients {
		if d := difference(got[id], want[id]); d != "" {
			m.t.Errorf("%s: client %s: incremental and from scratch differ: %s", what, m.clients[id].ID, d)
		}
		changed = changed || !maps.Equal(got[id], m.have[id])
	}
	if n := planner.tables.Faults().Panics; n > 0 {
		m.t.Errorf("%s: %d panics", what, n)
	}
	return changed
}

// subjectsOf returns the objects of a kind that are edited. What kinds of Kubernetes become together stands for each.
func (m *ruledMesh) subjectsOf(kind value.Kind) (out []subject) {
	add := func(name string, v any, put func(b *snapshottest.Batch, v reflect.Value)) {
		out = append(out, subject{string(kind) + " " + name, reflect.ValueOf(v), put})
	}
	switch kind {
	case value.KindService, value.KindServiceEntry:
		for k, svc := range m.state.Services {
			if (svc.Registry == value.RegistryKubernetes) == (kind == value.KindService) {
				add(k.String(), svc, func(b *snapshottest.Batch, v reflect.Value) { b.Services = with(b.Services, k, v) })
			}
		}
	case value.KindEndpointSlice, value.KindNode:
		for k, p := range m.state.Projections {
			if kind == value.KindNode && k.Host != "ext.example.com" {
				continue // it tells where endpoints are, and comes as they do
			}
			add(k.String(), p,
				func(b *snapshottest.Batch, v reflect.Value) { b.Projections = with(b.Projections, k, v) })
		}
	case value.KindPod, value.KindWorkloadEntry:
		for a, w := range m.state.Workloads {
			if w.Pod == (kind == value.KindPod) {
				add(a, w, func(b *snapshottest.Batch, v reflect.Value) { b.Workloads = with(b.Workloads, a, v) })
			}
		}
	case value.KindMeshConfig:
		add("", m.state.Mesh, func(b *snapshottest.Batch, v reflect.Value) {
			if b.Mesh = testMesh(2); v.IsValid() {
				b.Mesh = v.Interface().(*value.Mesh)
			}
		})
	}
	for k, o := range m.state.Objects {
		if k.Kind == kind {
			add(k.Namespace+"/"+k.Name, o, func(b *snapshottest.Batch, v reflect.Value) {
				b.Objects = maps.Clone(b.Objects)
				if b.Objects == nil {
					b.Objects = map[value.ObjectKey]value.Value{}
				}
				if b.Objects[k] = nil; v.IsValid() {
					b.Objects[k] = v.Interface().(value.Value)
				}
			})
		}
	}
	return out
}

// with returns a map with another value; the zero Value is nil.
func with[K comparable, V any](m map[K]*V, k K, v reflect.Value) map[K]*V {
	out := maps.Clone(m)
	if out == nil {
		out = map[K]*V{}
	}
	if out[k] = nil; v.IsValid() {
		out[k] = v.Interface().(*V)
	}
	return out
}

// ruledClients returns clients of all sorts: in namespaces with objects and without, with a Sidecar object and without,
// of each type and interception, with Istio's filters and without.
func ruledClients() map[uint64]*proxy.Proxy {
	out := map[uint64]*proxy.Proxy{}
	for _, c := range []struct {
		name, namespace, address, app string
		traits                        value.Traits
	}{
		{"web", "a", "10.0.0.1", "web", value.Traits{Filters: value.AllFilters}},
		{"one", "a", "10.0.0.2", "one", value.Traits{Filters: value.AllFilters}},
		{"upstream", "b", "10.0.0.3", "db", value.Traits{}},
		{"bare", "b", "10.0.0.4", "bare", value.Traits{Filters: value.AllFilters, Interception: value.NoInterception}},
		{"far", "c", "10.0.0.5", "far", value.Traits{Filters: value.AllFilters, Interception: value.TProxy}},
		{"edge", "gw", "10.0.0.6", "edge", value.Traits{Type: value.Router, Filters: value.AllFilters}},
		{"grpc", "a", "10.0.0.7", "web", value.Traits{Type: value.Proxyless}},
		{"vm", "b", "10.0.0.8", "vm", value.Traits{Filters: value.AllFilters}},
	} {
		c.traits.IPv4 = true
		out[uint64(len(out)+1)] = &proxy.Proxy{ID: c.name, Namespace: c.namespace, Addresses: []string{c.address},
			ClusterID: "Kubernetes", Labels: proxy.PackLabels(value.Labels{"app": c.app}), Traits: c.traits}
	}
	return out
}

// ruledObjects returns objects of all kinds that have to do with each other.
func ruledObjects() snapshottest.Batch {
	b := snapshottest.Batch{
		Mesh: testMesh(0), Services: map[value.ServiceKey]*value.Service{}, Objects: map[value.ObjectKey]value.Value{},
		Projections: map[value.ServiceKey]*value.Projection{}, Endpoints: map[value.ServiceKey][]*value.Endpoint{},
		Workloads: map[string]*value.Workload{},
	}
	for _, o := range ruledRules() {
		b.Objects[o.Object()] = o
	}
	for _, svc := range ruledServices() {
		b.Services[svc.ServiceKey] = svc
	}
	for host, address := range map[string]string{"web.a.svc.cluster.local/a": "10.0.0.1",
		"db.b.svc.cluster.local/b": "10.0.0.3", "ext.example.com/b": "10.0.0.8", "edge.gw.svc.cluster.local/gw": "10.0.0.6",
	} {
		name, ns, _ := strings.Cut(host, "/")
		k := value.ServiceKey{Host: name, Namespace: ns}
		id := value.Identity{Namespace: ns, Workload: "w", TLSMode: "istio",
			ServiceAccount: "cluster.local/ns/" + ns + "/sa/x"}
		e := &value.Endpoint{Addresses: []string{address}, Weight: 1, Identity: unique.Make(id),
			Labels: value.Labels{"version": "v1"}, Locality: value.Locality{Region: "r"}}
		for _, p := range b.Services[k].Ports {
			e.Ports = append(e.Ports, value.EndpointPort{Name: p.Name, Port: uint32(p.Number) + 8000})
		}
		b.Endpoints[k] = []*value.Endpoint{e}
		b.Projections[k] = projection(b.Endpoints[k])
	}
	for _, p := range ruledClients() {
		w := &value.Workload{Namespace: p.Namespace, Name: p.ID, Addresses: p.Addresses, Pod: p.ID != "vm",
			Labels: value.Labels{"app": p.ID}, NamedPorts: map[string]int{"named": 7777}}
		if !w.Pod {
			w.NamedPorts, w.Ports = nil, map[string]uint32{"http": 7000}
		}
		b.Workloads[p.Addresses[0]] = w
	}
	return b
}

func ruledServices() []*value.Service {
	public := value.Visibility{Public: true}
	service := func(host, namespace string, s value.Service, ports ...*value.Port) *value.Service {
		s.ServiceKey, s.Export, s.Ports = value.ServiceKey{Host: host, Namespace: namespace}, public, ports
		s.Name, _, _ = strings.Cut(host, ".")
		s.Object = value.ObjectKey{Kind: value.KindService, Namespace: namespace, Name: s.Name}
		if strings.HasSuffix(host, "cluster.local") && s.Resolution != value.Alias {
			s.Selector = value.Labels{"app": s.Name}
		}
		return &s
	}
	port := func(number int, protocol value.Protocol) *value.Port {
		return &value.Port{Name: strings.ToLower(string(protocol)), Number: number, Protocol: protocol,
			TargetPort: number + 8000}
	}
	named := port(81, value.HTTP2)
	named.TargetName = "named"
	return []*value.Service{
		service("web.a.svc.cluster.local", "a", value.Service{Addresses: []string{"10.96.0.1"}}, port(80, value.HTTP),
			port(443, value.HTTPS), port(9000, value.TCP), port(9001, value.Auto), named),
		service("db.b.svc.cluster.local", "b", value.Service{Headless: true, Resolution: value.Passthrough},
			port(3306, value.TCP), port(80, value.HTTP)),
		service("alias.a.svc.cluster.local", "a", value.Service{Resolution: value.Alias,
			ExternalName: "web.a.svc.cluster.local"}, port(80, value.HTTP), port(9000, value.TCP)),
		service("edge.gw.svc.cluster.local", "gw", value.Service{Addresses: []string{"10.96.0.2"}}, port(80, value.HTTP),
			port(443, value.HTTPS)),
		service("ext.example.com", "b", value.Service{Registry: value.RegistryExternal, External: true,
			Resolution: value.DNSLB, Addresses: []string{"10.96.0.1"}}, port(80, value.HTTP), port(443, value.TLS)),
		service("*.wild.example.com", "b", value.Service{Registry: value.RegistryExternal, External: true,
			Resolution: value.Passthrough, Addresses: []string{"10.97.0.0/16"}}, port(443, value.TLS)),
		service("vm.b.svc.cluster.local", "b", value.Service{Addresses: []string{"10.96.0.3"}}, port(80, value.HTTP)),
	}
}

// ruledRules returns the objects that say how the services are called.
func ruledRules() []value.Value {
	public, strict := value.Visibility{Public: true}, value.Strict
	to := func(hosts ...string) (out []value.WeightedDestination) {
		for _, h := range hosts {
			out = append(out, value.WeightedDestination{Destination: value.Destination{Host: h}, Weight: 1})
		}
		return out
	}
	meta := func(namespace, name string) value.Meta {
		return value.Meta{Namespace: namespace, Name: name, Created: 1}
	}
	server := func(number int, protocol value.Protocol, tls *value.ServerTLS) *value.Server {
		return &value.Server{Port: value.ListenerPort{Number: number, Name: string(protocol), Protocol: protocol},
			Hosts: []value.ServerHost{{Namespace: "*", Host: "*.example.com"}}, TLS: tls}
	}
	return []value.Value{
		&value.VirtualService{Meta: meta("a", "web"), Export: public, Routing: value.Routing{
			Hosts: []string{"web.a.svc.cluster.local", "shop.example.com"}, Gateways: []string{"mesh", "gw/edge"},
			HTTP: []*value.HTTPRoute{{Name: "first", Destinations: to("web.a.svc.cluster.local", "ext.example.com"),
				Matches: []*value.HTTPMatch{{Path: &value.StringMatch{Kind: value.MatchPrefix, Text: "/a"},
					Client: value.Client{Labels: value.Labels{"app": "one"}}}},
				Timeout: value.Duration{Seconds: 1, Set: true}, Retries: &value.Retries{Attempts: 1},
				Mirrors: []value.Mirror{{Destination: value.Destination{Host: "db.b.svc.cluster.local"}}}},
				{Destinations: to("db.b.svc.cluster.local")}}}},
		&value.VirtualService{Meta: meta("b", "bytes"), Export: public, Routing: value.Routing{
			Hosts: []string{"*.example.com", "db.b.svc.cluster.local"}, Gateways: []string{"mesh", "gw/edge"},
			TCP: []*value.StreamRoute{{Destinations: to("db.b.svc.cluster.local", "web.a.svc.cluster.local"),
				Matches: []*value.StreamMatch{{Port: 3306}, {Port: 9000}}}},
			TLS: []*value.StreamRoute{{Destinations: to("ext.example.com"),
				Matches: []*value.StreamMatch{{ServerNames: []string{"ext.example.com"}}}}}}},
		&value.DestinationRule{Meta: meta("a", "web"), Export: public, DestinationPolicy: value.DestinationPolicy{
			Host: "web.a.svc.cluster.local", Policy: &value.PortPolicies{TrafficPolicy: value.TrafficPolicy{
				Pool:     &value.ConnectionPool{MaxConnections: 1, TCPIdle: value.Duration{Seconds: 1, Set: true}},
				Outlier:  &value.OutlierDetection{MinHealthPercent: 1},
				Balancer: &value.LoadBalancer{Hash: &value.ConsistentHash{By: value.HashHeader, Name: "x-user"}},
				TLS:      &value.ClientTLS{Mode: value.SimpleTLS}}},
			Subsets: []*value.Subset{{Name: "v1", Labels: value.Labels{"version": "v1"}}}}},
		&value.DestinationRule{Meta: meta("root", "all"), Export: public, DestinationPolicy: value.DestinationPolicy{
			Host: "*.svc.cluster.local", Policy: &value.PortPolicies{TrafficPolicy: value.TrafficPolicy{
				Pool: &value.ConnectionPool{MaxRequests: 5}}}}},
		&value.Gateway{Meta: meta("gw", "edge"), GatewaySettings: value.GatewaySettings{
			Workload: value.Labels{"app": "edge"}, Servers: []*value.Server{server(80, value.HTTP, nil),
				server(443, value.HTTPS, &value.ServerTLS{Mode: value.SimpleTLS, Credentials: []string{"cert"}}),
				server(8443, value.TLS, &value.ServerTLS{Mode: value.PassthroughTLS}), server(3306, value.TCP, nil)}}},
		&value.Sidecar{Meta: meta("a", "one"), SidecarSettings: value.SidecarSettings{
			Workload: value.Labels{"app": "one"},
			Egress: []*value.EgressListener{{Port: &value.ListenerPort{Number: 3306, Name: "db", Protocol: value.TCP},
				Hosts: []string{"b/*"}}, {Hosts: []string{"./*", "b/ext.example.com"}}},
			Ingress: []*value.IngressListener{{Port: value.ListenerPort{Number: 7000, Name: "in", Protocol: value.HTTP},
				Forward: "127.0.0.1:7001"}}, Outbound: &value.SidecarOutbound{Mode: value.RegistryOnly}}},
		&value.Sidecar{Meta: meta("c", "default"), SidecarSettings: value.SidecarSettings{
			Egress: []*value.EgressListener{{Hosts: []string{"*/*.example.com", "a/web.a.svc.cluster.local"}}}}},
		&value.PeerAuthentication{Meta: meta("a", "web"), Labels: value.Labels{"app": "web"}, Mode: &strict,
			Ports: map[uint32]*value.MTLSMode{8080: new(value.MTLSMode)}},
		&value.PeerAuthentication{Meta: meta("root", "default"), Mode: new(value.MTLSMode)},
		&value.AuthorizationPolicy{Meta: meta("a", "deny"), Action: value.DenyAction,
			PolicyTarget: value.PolicyTarget{Labels: value.Labels{"app": "web"}},
			Rules: []value.AuthorizationRule{{Sources: [][]value.AccessCondition{{
				{Attribute: value.SourceNamespace, Values: []string{"b"}, NotValues: []string{"c"}}}},
				Operations: [][]value.AccessCondition{{{Attribute: value.DestinationPort, Values: []string{"8080"}}}}}}},
		&value.AuthorizationPolicy{Meta: meta("b", "ask"), Action: value.CustomAction, Provider: "grpc",
			Rules: []value.AuthorizationRule{{Sources: [][]value.AccessCondition{{}},
				Operations: [][]value.AccessCondition{{}}}}},
		&value.RequestAuthentication{Meta: meta("a", "tokens"),
			PolicyTarget: value.PolicyTarget{Labels: value.Labels{"app": "web"}},
			Rules:        []value.TokenRule{{Issuer: "issuer.example.com", Keys: `{"keys":[]}`, Params: []string{"token"}}}},
		&value.AuthorizationPolicy{Meta: meta("gw", "edge"), Rules: []value.AuthorizationRule{{
			Sources: [][]value.AccessCondition{{}}, Operations: [][]value.AccessCondition{{}}}}},
		&value.Namespace{Name: "a", Labels: value.Labels{"team": "a"}},
	}
}
