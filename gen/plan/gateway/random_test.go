package gateway

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/envoytext"
	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/gen/plan/outbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestRoutersEqualScratch: whatever Gateways, VirtualServices, Services and DestinationRules come, change and go, the
// listeners and routes of routers are those that they would have from nothing, and those that the plain function in
// scratch_test.go gives them.
func TestRoutersEqualScratch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine()
		for _, f := range []scope.Facts{
			{Namespace: "gw", Traits: value.Traits{Type: value.Router, IPv4: true, Filters: value.AllFilters}},
			{Namespace: "a", Traits: value.Traits{Type: value.Router, IPv6: true, Unprivileged: true}},
		} {
			m.join(f)
		}
		t.Repeat(map[string]func(*rapid.T){"": m.check, "batch": m.batch})
	})
}

// machine is a random mesh behind gateways, and what routers have of it.
type machine struct {
	tables  Tables
	calls   outbound.Tables
	trims   *scope.Trims
	builder *snapshot.Builder
	clients []*client
}

// client is one class of routers.
type client struct {
	scope  *scope.Scope
	snap   *snapshot.Snapshot
	router *Router
}

func newMachine() *machine {
	faults := checked.NewFaults()
	m := &machine{tables: NewTables(faults), calls: outbound.NewTables(faults), trims: scope.NewTrims()}
	m.builder = snapshot.NewBuilder(m)
	mesh := istio.Mesh(&meshconfig.MeshConfig{RootNamespace: "root", TrustDomain: "cluster.local"}, "cluster.local",
		"Kubernetes")
	snapshottest.Apply(m.builder, &snapshottest.Batch{Mesh: mesh})
	return m
}

// join adds a class of routers that the Gateways for app=edge select.
func (m *machine) join(f scope.Facts) *client {
	labels := value.Labels{"app": "edge"}
	f.Labels = value.LabelsKey(labels)
	c := &client{scope: scope.New(f, labels, m.trims)}
	m.fresh(c)
	m.clients = append(m.clients, c)
	return c
}

// fresh makes the router of a class from nothing, apart from what others have.
func (m *machine) fresh(c *client) {
	n := m.builder.View().Snapshot
	m.tables.routers = &memory{}
	c.snap, c.router = n, m.tables.Advance(nil, Change{Scope: c.scope, Now: n,
		Affected: scope.Everything(scope.NewMemo(n), c.scope)}, &m.calls)
}

// Publish implements snapshot.Listener.
func (m *machine) Publish(v *snapshot.View, d *snapshot.Delta) {
	for _, c := range m.clients {
		c.router = m.tables.Advance(c.router, Change{Scope: c.scope, Old: c.snap, Now: v.Snapshot,
			Affected: scope.AffectedBy(c.snap, v.Snapshot, d)}, &m.calls)
		c.snap = v.Snapshot
	}
}

func (m *machine) batch(t *rapid.T) {
	b := &snapshottest.Batch{
		Services: map[value.ServiceKey]*value.Service{}, VirtualServices: map[value.ObjectKey]*value.VirtualService{},
		DestinationRules: map[value.ObjectKey]*value.DestinationRule{}, Gateways: map[value.ObjectKey]*value.Gateway{},
	}
	for range rapid.IntRange(1, 3).Draw(t, "changes") {
		m.change(t, b)
	}
	snapshottest.Apply(m.builder, b)
}

func (m *machine) change(t *rapid.T, b *snapshottest.Batch) {
	meta := value.Meta{Namespace: pick(t, "namespace", "gw", "a"), Name: pick(t, "name", "x", "y", "z"),
		Created: int64(rapid.IntRange(0, 2).Draw(t, "created"))}
	key := func(kind value.Kind) value.ObjectKey {
		return value.ObjectKey{Kind: kind, Namespace: meta.Namespace, Name: meta.Name}
	}
	gone := rapid.IntRange(0, 4).Draw(t, "gone") == 0
	switch kind := pick(t, "kind", "gateway", "gateway", "server", "virtualservice", "virtualservice", "virtualservice",
		"rule", "service"); kind {
	case "gateway", "server":
		k := key(value.KindGateway)
		had := m.builder.View().Snapshot.Gateway(meta.Namespace, meta.Name)
		if b.Gateways[k] = nil; kind == "server" && had != nil {
			b.Gateways[k] = editedGateway(t, had)
		} else if !gone {
			b.Gateways[k] = routerGateway(t, meta)
		}
	case "virtualservice":
		b.VirtualServices[key(value.KindVirtualService)] = nil
		if !gone {
			b.VirtualServices[key(value.KindVirtualService)] = routerService(t, meta)
		}
	case "rule":
		b.DestinationRules[key(value.KindDestinationRule)] = nil
		if !gone {
			d := routerRule(t, meta)
			b.DestinationRules[key(value.KindDestinationRule)] = d
		}
	case "service":
		k := value.ServiceKey{Host: pick(t, "service", "one.a.svc.cluster.local", "two.gw.svc.cluster.local",
			"edge.gw.svc.cluster.local"), Namespace: meta.Namespace}
		b.Services[k] = nil
		if !gone {
			b.Services[k] = destinationService(t, k, meta)
		}
	}
}

// routerRule says how destinations of routes are called: what virtual hosts and chains of bytes read of it.
func routerRule(t *rapid.T, meta value.Meta) *value.DestinationRule {
	d := &value.DestinationRule{Meta: meta, Export: exportTo(t, meta.Namespace)}
	d.From = []value.ObjectKey{d.Object()}
	d.Host = pick(t, "ruled", "one.a.svc.cluster.local", "two.gw.svc.cluster.local", "*.a.svc.cluster.local")
	policy := &value.PortPolicies{}
	switch pick(t, "policy", "none", "idle", "header", "address") {
	case "none":
		return d
	case "idle":
		policy.Pool = &value.ConnectionPool{TCPIdle: value.Duration{
			Seconds: int64(rapid.IntRange(1, 2).Draw(t, "idle")), Set: true}}
	case "header":
		policy.Balancer = &value.LoadBalancer{Hash: &value.ConsistentHash{By: value.HashHeader,
			Name: pick(t, "header", "x-one", "x-two")}}
	case "address":
		policy.Balancer = &value.LoadBalancer{Hash: &value.ConsistentHash{By: value.HashAddress, Address: true}}
	}
	d.Policy = policy
	return d
}

func pick(t *rapid.T, what string, from ...string) string {
	return rapid.SampledFrom(from).Draw(t, what)
}

func exportTo(t *rapid.T, ns string) value.Visibility {
	return value.NewVisibility(rapid.SampledFrom([][]string{nil, {"."}, {"*"}, {"gw"}, {"a", "."}}).Draw(t, "exportTo"),
		nil, ns)
}

// destinationService returns one that routes lead to, or the router's own, whose ports lead to others of the router.
func destinationService(t *rapid.T, k value.ServiceKey, meta value.Meta) *value.Service {
	s := &value.Service{ServiceKey: k, Name: k.Host[:3], Created: meta.Created, Export: exportTo(t, k.Namespace),
		Addresses: []string{"10.0.0.1"}, Selector: value.Labels{"app": pick(t, "selects", "one", "one", "edge")}}
	for _, n := range rapid.SliceOfNDistinct(rapid.SampledFrom([]int{80, 443, 9000}), 1, 2, rapid.ID[int]).Draw(t,
		"ports") {
		s.Ports = append(s.Ports, &value.Port{Name: fmt.Sprint("p", n), Number: n, Protocol: value.HTTP,
			TargetPort: rapid.SampledFrom([]int{0, 8080, 9000}).Draw(t, "target")})
	}
	if rapid.IntRange(0, 4).Draw(t, "alias") == 0 {
		s.ExternalName, s.Resolution, s.Selector = pick(t, "alias of", "one.a.svc.cluster.local", "far.example.com"),
			value.Alias, nil
	}
	return s
}

func edgeHost(t *rapid.T) string {
	return pick(t, "host", "a.example.com", "b.example.com", "x.a.example.com", "*.example.com", "*.a.example.com",
		"*ample.com", "*")
}

func routerGateway(t *rapid.T, meta value.Meta) *value.Gateway {
	g := &value.Gateway{Meta: meta}
	g.Workload = value.Labels{"app": pick(t, "app", "edge", "edge", "edge", "other")}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"p1", "p2", "p3", "p4"}), 1, 4,
		rapid.ID[string]).Draw(t, "servers") {
		g.Servers = append(g.Servers, routerServer(t, name))
	}
	return g
}

// editedGateway returns a Gateway with one of its servers edited, renamed, gone, moved, or beside a new one.
func editedGateway(t *rapid.T, had *value.Gateway) *value.Gateway {
	g := &value.Gateway{Meta: had.Meta, GatewaySettings: had.GatewaySettings}
	g.Servers = slices.Clone(had.Servers)
	i := rapid.IntRange(0, len(g.Servers)-1).Draw(t, "server")
	switch edit := pick(t, "edit", "edit", "rename", "remove", "add", "swap", "older"); edit {
	case "edit":
		g.Servers[i] = routerServer(t, g.Servers[i].Port.Name)
	case "rename":
		s := *g.Servers[i]
		s.Port.Name = "renamed" + fmt.Sprint(i)
		g.Servers[i] = &s
	case "remove":
		if len(g.Servers) > 1 {
			g.Servers = slices.Delete(g.Servers, i, i+1)
		}
	case "add":
		g.Servers = slices.Insert(g.Servers, i, routerServer(t, "added"+fmt.Sprint(len(g.Servers))))
	case "swap":
		g.Servers[0], g.Servers[i] = g.Servers[i], g.Servers[0]
	case "older":
		g.Created = int64(rapid.IntRange(0, 3).Draw(t, "created"))
	}
	return g
}

func routerServer(t *rapid.T, name string) *value.Server {
	s := &value.Server{Port: value.ListenerPort{Name: name}, Name: pick(t, "called", "", "", "edge")}
	s.Port.Protocol = rapid.SampledFrom([]value.Protocol{value.HTTP, value.HTTP, value.HTTPS, value.HTTPS, value.TLS,
		value.TCP, value.GRPC}).Draw(t, "protocol")
	s.Port.Number = rapid.SampledFrom([]int{80, 443, 443, 9000}).Draw(t, "port")
	s.Bind = pick(t, "bind", "", "", "", "10.0.0.1", "0.0.0.0")
	for range rapid.IntRange(1, 3).Draw(t, "hosts") {
		s.Hosts = append(s.Hosts, value.ServerHost{Namespace: pick(t, "from", "*", "*", "a", "gw"), Host: edgeHost(t)})
	}
	s.Hosts = slices.Compact(s.Hosts)
	switch s.Port.Protocol {
	case value.HTTP, value.GRPC:
		if rapid.IntRange(0, 3).Draw(t, "redirect") == 0 {
			s.TLS, s.Redirect = &value.ServerTLS{Mode: value.PassthroughTLS}, true
		}
	case value.HTTPS, value.TLS:
		mode := rapid.SampledFrom([]value.TLSMode{value.SimpleTLS, value.MutualTLS, value.MeshTLS,
			value.PassthroughTLS}).Draw(t, "mode")
		s.TLS = &value.ServerTLS{Mode: mode, Credentials: []string{pick(t, "credential", "one", "two")}}
	}
	return s
}

func routerService(t *rapid.T, meta value.Meta) *value.VirtualService {
	to := &networking.Destination{Host: pick(t, "to", "one.a.svc.cluster.local", "two.gw.svc.cluster.local",
		"none.a.svc.cluster.local")}
	spec := &networking.VirtualService{
		Hosts: rapid.SliceOfNDistinct(rapid.Custom(edgeHost), 1, 3, rapid.ID[string]).Draw(t, "hosts"),
		Gateways: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"gw/x", "gw/y", "gw/z", "a/x", "mesh"}), 1, 3,
			rapid.ID[string]).Draw(t, "gateways"),
	}
	size := 0
	if rapid.IntRange(0, 3).Draw(t, "http") > 0 {
		spec.Http = []*networking.HTTPRoute{{Route: []*networking.HTTPRouteDestination{{Destination: to}}}}
		switch pick(t, "match", "", "", "path", "regex", "port", "gateway") {
		case "path":
			spec.Http[0].Match = []*networking.HTTPMatchRequest{{
				Uri: &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: pick(t, "prefix", "/a", "/b")}}}}
		case "regex":
			spec.Http[0].Match, size = regexMatch(pick(t, "expression", "/[0-9a-f-]{36}", "/a+"))
		case "port":
			spec.Http[0].Match = []*networking.HTTPMatchRequest{{Port: rapid.SampledFrom([]uint32{80, 443}).Draw(t,
				"matched")}}
		case "gateway":
			spec.Http[0].Match = []*networking.HTTPMatchRequest{{Gateways: []string{"gw/x"}}}
		}
	}
	route := []*networking.RouteDestination{{Destination: to}}
	if rapid.IntRange(0, 2).Draw(t, "tcp") == 0 {
		spec.Tcp = []*networking.TCPRoute{{Match: []*networking.L4MatchAttributes{{Port: rapid.SampledFrom([]uint32{0,
			443, 9000}).Draw(t, "tcp port")}}, Route: route}}
	}
	if rapid.IntRange(0, 1).Draw(t, "tls") == 0 {
		for range rapid.IntRange(1, 2).Draw(t, "matches") {
			names := rapid.SliceOfNDistinct(rapid.Custom(edgeHost), 1, 2, rapid.ID[string]).Draw(t, "sni")
			spec.Tls = append(spec.Tls, &networking.TLSRoute{Match: []*networking.TLSMatchAttributes{{SniHosts: names}},
				Route: route})
		}
	}
	return &value.VirtualService{Meta: meta, Export: exportTo(t, meta.Namespace), Routing: istio.Routing(spec),
		RegexSize: size}
}

// check holds what routers have against what they would have from nothing.
func (m *machine) check(t *rapid.T) {
	for _, c := range m.clients {
		fresh := &client{scope: c.scope}
		m.fresh(fresh)
		plain := &scratchGateways{n: c.snap, sc: c.scope, tables: &m.tables, outbound: &m.calls}
		listeners, routes := plain.config()
		same(t, c.router.Listeners(), fresh.router.Listeners(), listeners, sortedParts)
		same(t, c.router.Routes(), fresh.router.Routes(), routes,
			func(e *encodecache.Entry) string { return string(e.Message()) })
	}
}

// same fails unless resources that came step by step, those from nothing, and those that the plain function gives are
// the same, by what content says of each.
func same(t *rapid.T, got, fresh classes.Section, plain []*encodecache.Entry, content func(*encodecache.Entry) string) {
	want := map[string]string{}
	for _, e := range plain {
		want[e.Name()] = content(e)
	}
	if got.Len() != fresh.Len() || got.Len() != len(want) {
		t.Fatalf("%d resources, from nothing %d, plainly %d", got.Len(), fresh.Len(), len(want))
	}
	for name, e := range got.All() {
		if f, ok := fresh.Get(name); !ok || f.Version() != e.Version() || content(f) != content(e) {
			t.Fatalf("%s is another one than from nothing", name)
		}
		if w, ok := want[name]; !ok || content(e) != w {
			t.Fatalf("%s is another one than plainly", name)
		}
	}
}

// sortedParts returns a listener but for the order of its filter chains, in which two that are the same are one.
func sortedParts(e *encodecache.Entry) string {
	var parts [][]byte
	for f := range e.Parts() {
		if len(f.Bytes()) > 0 {
			parts = append(parts, f.Bytes())
		}
	}
	slices.SortFunc(parts[1:], bytes.Compare)
	return fmt.Sprintf("%x", slices.CompactFunc(parts, bytes.Equal))
}

// regexMatch returns a match by an expression, with the size of its program.
func regexMatch(expression string) ([]*networking.HTTPMatchRequest, int) {
	size, err := new(envoytext.Meter).Size(expression)
	if err != nil {
		panic(err)
	}
	return []*networking.HTTPMatchRequest{{
		Uri: &networking.StringMatch{MatchType: &networking.StringMatch_Regex{Regex: expression}}}}, size
}
