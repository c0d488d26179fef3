package plan

import (
	"fmt"
	"testing"

	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discoverypb "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// routerMachine is a mesh behind gateways, and what routers have of it.
type routerMachine struct {
	tables  *Tables
	builder *snapshot.Builder
	bases   []*base
	chains  uint64 // filter chains that were encoded
}

// Publish implements snapshot.Listener.
func (m *routerMachine) Publish(v *snapshot.View, d *snapshot.Delta) {
	for i, b := range m.bases {
		m.bases[i] = m.tables.advance(b, v.Snapshot, scope.AffectedBy(b.snap, v.Snapshot, d))
	}
}

// edgeMesh has hosts hosts behind one Gateway of plain text, and each behind one of its own with TLS.
func edgeMesh(hosts int) *routerMachine {
	m := &routerMachine{tables: NewTables()}
	m.tables.faults.Hook(func(key any) {
		if _, ok := key.(gen.GatewayChainKey); ok {
			m.chains++
		}
	})
	m.builder = snapshot.NewBuilder(m)
	b := &snapshottest.Batch{
		Mesh: testMesh(0), Services: map[value.ServiceKey]*value.Service{},
		VirtualServices: map[value.ObjectKey]*value.VirtualService{}, Gateways: map[value.ObjectKey]*value.Gateway{},
	}
	s := objectLine{set: map[string]string{"port": "80/HTTP", "ip": "10.0.0.1"}}.service("one.a.svc.cluster.local", "a")
	b.Services[s.ServiceKey] = s
	for i := range hosts {
		vs, gw := edgeRoute(i, 0, "gw/all", fmt.Sprint("gw/t", i)), edgeGateway(i, "cert")
		b.VirtualServices[value.ObjectKey{Kind: value.KindVirtualService, Namespace: "a", Name: vs.Name}] = vs
		b.Gateways[value.ObjectKey{Kind: value.KindGateway, Namespace: "gw", Name: gw.Name}] = gw
	}
	all := objectLine{words: []string{"app=edge"}, set: map[string]string{"server": "80/HTTP/*/*"}}.gateway("gw/all")
	b.Gateways[value.ObjectKey{Kind: value.KindGateway, Namespace: "gw", Name: "all"}] = all
	snapshottest.Apply(m.builder, b)
	m.join(scope.Facts{})
	return m
}

// join adds a router with further Facts.
func (m *routerMachine) join(f scope.Facts) *base {
	labels := value.Labels{"app": "edge"}
	f.Namespace, f.Labels, f.Traits = "gw", value.LabelsKey(labels), value.Traits{Type: value.Router, IPv4: true}
	m.bases = append(m.bases, m.tables.newBase(m.builder.View().Snapshot, f, labels))
	return m.bases[len(m.bases)-1]
}

func edgeRoute(i, variant int, gateways ...string) *value.VirtualService {
	return &value.VirtualService{Meta: value.Meta{Namespace: "a", Name: fmt.Sprint("r", i)},
		Export: value.Visibility{Public: true}, Routing: istio.Routing(&networking.VirtualService{
			Hosts: []string{fmt.Sprintf("h%d.example.com", i)}, Gateways: gateways,
			Http: []*networking.HTTPRoute{{Timeout: &durationpb.Duration{Seconds: int64(1 + variant)},
				Route: []*networking.HTTPRouteDestination{
					{Destination: &networking.Destination{Host: "one.a.svc.cluster.local"}},
				}}},
		})}
}

func edgeGateway(i int, credential string) *value.Gateway {
	o := objectLine{words: []string{"app=edge"},
		set: map[string]string{"server": fmt.Sprintf("443/HTTPS/*/h%d.example.com", i)}}
	g := o.gateway(fmt.Sprint("gw/t", i))
	g.Servers[0].TLS.Credentials = []string{credential}
	return g
}

func (m *routerMachine) putService(vs *value.VirtualService) {
	snapshottest.Apply(
		m.builder,
		&snapshottest.Batch{
			VirtualServices: map[value.ObjectKey]*value.VirtualService{
				{Kind: value.KindVirtualService, Namespace: vs.Namespace, Name: vs.Name}: vs,
			},
		},
	)
}

func (m *routerMachine) putGateway(g *value.Gateway) {
	snapshottest.Apply(
		m.builder,
		&snapshottest.Batch{Gateways: map[value.ObjectKey]*value.Gateway{{Kind: value.KindGateway,
			Namespace: g.Namespace, Name: g.Name}: g}},
	)
}

// fills returns how many virtual hosts, filter chains and clusters were encoded so far.
func (m *routerMachine) fills() [3]uint64 {
	return [3]uint64{m.tables.Routes.Hosts.Fills(), m.chains,
		m.tables.Clusters.Outbound.Fills()}
}

// TestRouterEncodesWhatChanged: of many hosts one edit encodes one virtual host, or one filter chain, and touches no
// other type.
func TestRouterEncodesWhatChanged(t *testing.T) {
	m := edgeMesh(300)
	for _, c := range []struct {
		what                                     string
		edit                                     func()
		want                                     [3]uint64
		clusters, listeners, routes, assignments bool // whether they change
	}{
		{"a route", func() { m.putService(edgeRoute(7, 1, "gw/all")) }, [3]uint64{1, 0, 0}, false, false, true, false},
		{"a credential", func() { m.putGateway(edgeGateway(8, "other")) }, [3]uint64{0, 1, 0}, false, true, false,
			false},
		{"a route that no router sees", func() { m.putService(edgeRoute(900, 1, "gw/nobody")) }, [3]uint64{}, false,
			false, false, false},
		{"a Gateway without routes", func() { m.putGateway(edgeGateway(900, "cert")) }, [3]uint64{0, 1, 0}, false, true,
			true, false},
		{"a rule", func() {
			d := &value.DestinationRule{Meta: value.Meta{Namespace: "a", Name: "d"},
				Export:            value.Visibility{Public: true},
				DestinationPolicy: value.DestinationPolicy{Host: "one.a.svc.cluster.local"}}
			snapshottest.Apply(m.builder, &snapshottest.Batch{DestinationRules: map[value.ObjectKey]*value.DestinationRule{{
				Kind: value.KindDestinationRule, Namespace: "a", Name: "d"}: d}})
		}, [3]uint64{0, 0, 1}, true, false, false, false},
	} {
		before, fills := m.bases[0], m.fills()
		c.edit()
		after := m.bases[0]
		for i, n := range m.fills() {
			if n-fills[i] != c.want[i] {
				t.Errorf("%s: %d encoded of kind %d, want %d", c.what, n-fills[i], i, c.want[i])
			}
		}
		for kind, is := range map[string][2]bool{
			"clusters":    {!before.clusters.Same(after.clusters), c.clusters},
			"listeners":   {!before.listeners.Same(after.listeners), c.listeners},
			"routes":      {!before.routes.Same(after.routes), c.routes},
			"assignments": {!before.assignments.Same(after.assignments), c.assignments},
		} {
			if is[0] != is[1] {
				t.Errorf("%s: %s changed: %v, want %v", c.what, kind, is[0], is[1])
			}
		}
	}
}

// TestRouterEditIsFlat: an edit allocates about the same, however many hosts there are beside the one that it is about.
func TestRouterEditIsFlat(t *testing.T) {
	cost := func(hosts int) map[string]float64 {
		m := edgeMesh(hosts)
		n := 0
		return map[string]float64{
			"route":      testing.AllocsPerRun(20, func() { n++; m.putService(edgeRoute(7, n, "gw/all")) }),
			"credential": testing.AllocsPerRun(20, func() { n++; m.putGateway(edgeGateway(8, fmt.Sprint(n))) }),
			"unseen":     testing.AllocsPerRun(20, func() { n++; m.putService(edgeRoute(hosts, n, "gw/nobody")) }),
		}
	}
	few, many := cost(100), cost(2000)
	for kind := range few {
		if many[kind] > 1.5*few[kind]+50 {
			t.Errorf("%s: %.0f allocations among 100 hosts, %.0f among 2000", kind, few[kind], many[kind])
		}
	}
}

// TestRouterRoutesAreOneResource: one edited host of many resends one route configuration, whole, as a list of pieces
// that were there.
func TestRouterRoutesAreOneResource(t *testing.T) {
	m := edgeMesh(500)
	before := m.bases[0].routes
	m.putService(edgeRoute(7, 1, "gw/all", "gw/t7"))
	var changed []*encodecache.Entry
	m.bases[0].routes.Diff(before, func(c chunked.Change[*encodecache.Entry]) { changed = append(changed, c.New) })
	if len(changed) != 2 || changed[0].Name() != "http.80" {
		t.Fatalf("%d route configurations changed", len(changed))
	}
	sotw, delta := &discoverypb.DiscoveryResponse{}, &discoverypb.DeltaDiscoveryResponse{}
	for response, into := range map[*encodecache.Response]proto.Message{
		encodecache.AssembleSotW(encodecache.Header{TypeURL: xdstype.RouteURL, Version: "v", Nonce: "n"},
			changed[:1]): sotw,
		encodecache.AssembleDelta(encodecache.Header{TypeURL: xdstype.RouteURL, Version: "v", Nonce: "n"}, changed[:1],
			nil): delta,
	} {
		if err := proto.Unmarshal(response.Buffers().Materialize(), into); err != nil {
			t.Fatal(err)
		}
		if n := response.Pieces(); n < 4 || n > 500 {
			t.Errorf("%T in %d pieces", into, n)
		}
	}
	if len(sotw.GetResources()) != 1 || len(delta.GetResources()) != 1 ||
		!proto.Equal(sotw.GetResources()[0], delta.GetResources()[0].GetResource()) {
		t.Error("not the same single resource in both protocols")
	}
	rc := &routepb.RouteConfiguration{}
	if err := sotw.GetResources()[0].UnmarshalTo(rc); err != nil || len(rc.GetVirtualHosts()) != 500 {
		t.Errorf("%d virtual hosts, %v", len(rc.GetVirtualHosts()), err)
	}
}

// TestRoutersShare: routers whose clusters and endpoints may differ, by where they are, have one router between them,
// before and after an edit.
func TestRoutersShare(t *testing.T) {
	m := edgeMesh(50)
	m.join(scope.Facts{Network: "east", Locality: value.Locality{Region: "east"}})
	m.join(scope.Facts{Network: "west", Locality: value.Locality{Region: "west"}})
	fills := m.fills()
	for n := range 2 {
		for _, b := range m.bases {
			if b.router != m.bases[0].router || !b.routes.Same(m.bases[0].routes) ||
				!b.listeners.Same(m.bases[0].listeners) {
				t.Errorf("%+v has listeners and routes of its own", b.scope.Facts)
			}
		}
		m.putService(edgeRoute(7, n+1, "gw/all"))
		if got := m.fills()[0] - fills[0]; got != uint64(n+1) {
			t.Errorf("%d virtual hosts encoded for %d edits", got, n+1)
		}
	}
}
