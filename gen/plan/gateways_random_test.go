package plan

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	networking "istio.io/api/networking/v1alpha3"
	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestRoutersEqualScratch: whatever Gateways, VirtualServices, Services and DestinationRules come, change and go, the
// listeners and routes of routers are those that they would have from nothing, and those that the plain function in
// gateways_scratch_test.go gives them.
func TestRoutersEqualScratch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &routerMachine{tables: NewTables()}
		m.builder = snapshot.NewBuilder(m)
		snapshottest.Apply(m.builder, &snapshottest.Batch{Mesh: testMesh(0)})
		for _, f := range []scope.Facts{
			{Namespace: "gw", Traits: value.Traits{Type: value.Router, IPv4: true, Filters: value.AllFilters}},
			{Namespace: "a", Traits: value.Traits{Type: value.Router, IPv6: true, Unprivileged: true}},
		} {
			labels := value.Labels{"app": "edge"}
			f.Labels = value.LabelsKey(labels)
			m.bases = append(m.bases, m.tables.newBase(m.builder.View().Snapshot, f, labels))
		}
		t.Repeat(map[string]func(*rapid.T){"": m.check, "batch": m.batch})
	})
}

// routerMachine is a random mesh behind gateways, and what routers have of it.
type routerMachine struct {
	tables  *Tables
	builder *snapshot.Builder
	bases   []*base
}

// Publish implements snapshot.Listener.
func (m *routerMachine) Publish(v *snapshot.View, d *snapshot.Delta) {
	for i, b := range m.bases {
		m.bases[i] = m.tables.advance(b, v.Snapshot, scope.AffectedBy(b.snap, v.Snapshot, d))
	}
}

func (m *routerMachine) batch(t *rapid.T) {
	b := &snapshottest.Batch{
		Services: map[value.ServiceKey]*value.Service{}, VirtualServices: map[value.ObjectKey]*value.VirtualService{},
		DestinationRules: map[value.ObjectKey]*value.DestinationRule{}, Gateways: map[value.ObjectKey]*value.Gateway{},
	}
	for range rapid.IntRange(1, 3).Draw(t, "changes") {
		m.change(t, b)
	}
	snapshottest.Apply(m.builder, b)
}

func (m *routerMachine) change(t *rapid.T, b *snapshottest.Batch) {
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
			d := randomRule(t, meta)
			d.Host = pick(t, "ruled", "one.a.svc.cluster.local", "two.gw.svc.cluster.local",
				"*.a.svc.cluster.local")
			if rapid.Bool().Draw(t, "hashes") {
				hash := &networking.DestinationRule{TrafficPolicy: hashing(pick(t, "header", "x-one", "x-two"))}
				d.Policy = istio.Policy(hash).Policy
			}
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

func hashing(header string) *networking.TrafficPolicy {
	return &networking.TrafficPolicy{
		LoadBalancer: &networking.LoadBalancerSettings{LbPolicy: &networking.LoadBalancerSettings_ConsistentHash{
			ConsistentHash: &networking.LoadBalancerSettings_ConsistentHashLB{
				HashKey: &networking.LoadBalancerSettings_ConsistentHashLB_HttpHeaderName{HttpHeaderName: header}},
		}}}
}

// destinationService is one that routes lead to, or the router's own, whose ports lead to others of the router.
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

// editedGateway is a Gateway with one of its servers edited, renamed, gone, moved, or beside a new one.
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
			spec.Http[0].Match, size = matchRegex(pick(t, "expression", "/[0-9a-f-]{36}", "/a+"))
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
func (m *routerMachine) check(t *rapid.T) {
	n := m.builder.View().Snapshot
	for _, b := range m.bases {
		fresh := m.tables.newBase(n, b.scope.Facts, b.scope.Labels)
		plain := &scratchGateways{n: n, sc: b.scope, tables: m.tables}
		listeners, routes := plain.config()
		for _, c := range []struct {
			kind  string
			is    Section
			new   Section
			plain []*encodecache.Entry
			parts func(*encodecache.Entry) string
		}{{"listener", b.listeners, fresh.listeners, listeners, sortedParts}, {"route", b.routes, fresh.routes, routes,
			func(e *encodecache.Entry) string { return string(e.Message()) }}} {
			want := map[string]string{}
			for _, e := range c.plain {
				want[e.Name()] = c.parts(e)
			}
			got, scratch := map[string]string{}, map[string]string{}
			for name, e := range c.is.All() {
				got[name] = c.parts(e)
			}
			for name, e := range c.new.All() {
				scratch[name] = c.parts(e)
			}
			if d := difference(got, scratch); d != "" {
				t.Fatalf("%s for %s, incremental and from nothing: %s", c.kind, b.scope.Namespace, d)
			}
			for name, e := range c.is.All() {
				if f, _ := c.new.Get(name); f.Version() != e.Version() {
					t.Fatalf("%s %s for %s has another version than from nothing", c.kind, name, b.scope.Namespace)
				}
			}
			if d := difference(scratch, want); d != "" {
				t.Fatalf("%s for %s, from nothing and plainly: %s", c.kind, b.scope.Namespace, d)
			}
		}
	}
}

// sortedParts is a listener but for the order of its filter chains, in which two that are the same are one.
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
