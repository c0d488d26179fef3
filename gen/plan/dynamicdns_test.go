package plan

import (
	"bytes"
	"slices"
	"testing"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	dfpclusterpb "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dynamic_forward_proxy/v3"
	dfpfilterpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/dynamic_forward_proxy/v3"
	hcmpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	carespb "github.com/envoyproxy/go-control-plane/envoy/extensions/network/dns_resolver/cares/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// dynamicMesh returns a mesh whose sidecars resolve the hosts of requests to unknown services, with web over HTTP at
// port 80 and db at port 5432.
func dynamicMesh() *snapshot.Builder {
	mesh := testMesh(0)
	mesh.Outbound.Mode = value.AllowAnyDynamicDNS
	b := &snapshottest.Batch{Mesh: mesh, Services: map[value.ServiceKey]*value.Service{}}
	addService(b, "web", &value.Port{Name: "http", Number: 80, Protocol: value.HTTP},
		&value.Port{Name: "https", Number: 443, Protocol: value.TLS})
	addService(b, "db", &value.Port{Name: "pg", Number: 5432, Protocol: value.TCP})
	builder := snapshot.NewBuilder(nil)
	snapshottest.Apply(builder, b)
	return builder
}

func addService(b *snapshottest.Batch, name string, ports ...*value.Port) {
	svc := &value.Service{ServiceKey: value.ServiceKey{Host: name + ".shop.svc.cluster.local", Namespace: "shop"},
		Name:   name,
		Export: value.Visibility{Public: true}, Addresses: []string{"10.96.0.1"}, Ports: ports}
	b.Services[svc.ServiceKey] = svc
}

func dynamicFacts() scope.Facts {
	return scope.Facts{Namespace: "shop", Traits: value.Traits{IPv4: true, Filters: value.AllFilters}}
}

// managers returns the HTTP connection managers of a base's listeners, by the listener's name.
func managers(t *testing.T, b *base) map[string]*hcmpb.HttpConnectionManager {
	t.Helper()
	out := map[string]*hcmpb.HttpConnectionManager{}
	for name, e := range b.listeners.All() {
		l := &listenerpb.Listener{}
		unmarshal(t, e.Message(), l)
		for _, c := range append(l.FilterChains, l.DefaultFilterChain) {
			for _, f := range c.GetFilters() {
				if m := (&hcmpb.HttpConnectionManager{}); f.GetTypedConfig().MessageIs(m) {
					unmarshal(t, f.GetTypedConfig().Value, m)
					out[name] = m
				}
			}
		}
	}
	return out
}

func unmarshal(t *testing.T, data []byte, into proto.Message) {
	t.Helper()
	if err := proto.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// TestDynamicDNS: every HTTP listener has the filter, the cluster has the same DNS cache, what no service is meant by
// goes there over HTTP and through as bytes, and connections to ports whose servers speak first are not looked into.
func TestDynamicDNS(t *testing.T) {
	b := NewTables().newBase(dynamicMesh().View().Snapshot, dynamicFacts(), value.Labels{})
	c, custom := &clusterpb.Cluster{}, &dfpclusterpb.ClusterConfig{}
	e, ok := b.clusters.Get(gen.DynamicDNSOut)
	if !ok {
		t.Fatal("there is no cluster")
	}
	unmarshal(t, e.Message(), c)
	unmarshal(t, c.GetClusterType().GetTypedConfig().GetValue(), custom)
	all := managers(t, b)
	if len(all) != 2 {
		t.Fatalf("%d listeners serve HTTP, want virtualOutbound and 0.0.0.0_80", len(all))
	}
	for name, m := range all {
		i := slices.IndexFunc(m.HttpFilters,
			func(f *hcmpb.HttpFilter) bool { return f.Name == "envoy.filters.http.dynamic_forward_proxy" })
		if i != len(m.HttpFilters)-2 {
			t.Fatalf("%s: the filter is number %d of %d, want it before the router", name, i, len(m.HttpFilters))
		}
		f := &dfpfilterpb.FilterConfig{}
		unmarshal(t, m.HttpFilters[i].GetTypedConfig().Value, f)
		if !proto.Equal(f.GetDnsCacheConfig(), custom.GetDnsCacheConfig()) {
			t.Errorf("%s: cache %v, the cluster has %v", name, f.GetDnsCacheConfig(), custom.GetDnsCacheConfig())
		}
	}
	rc := &routepb.RouteConfiguration{}
	r, _ := b.routes.Get("80")
	unmarshal(t, r.Message(), rc)
	for _, hosts := range [][]*routepb.VirtualHost{rc.VirtualHosts,
		all["virtualOutbound"].GetRouteConfig().GetVirtualHosts()} {
		if last := hosts[len(hosts)-1]; last.Domains[0] != "*" ||
			last.Routes[0].GetRoute().GetCluster() != gen.DynamicDNSOut {
			t.Errorf("the last virtual host is %v", last)
		}
	}
	l := &listenerpb.Listener{}
	v, _ := b.listeners.Get("virtualOutbound")
	unmarshal(t, v.Message(), l)
	if last := l.FilterChains[len(l.FilterChains)-1]; last.Name != "virtualOutbound-catchall-tcp" ||
		!bytes.Contains(last.Filters[0].GetTypedConfig().Value, []byte(gen.PassthroughOut)) {
		t.Errorf("the last chain is %s", last.Name)
	}
	if r := l.ListenerFilters[1].GetFilterDisabled().GetDestinationPortRange(); r.GetStart() != 5432 ||
		r.GetEnd() != 5433 {
		t.Errorf("not looked into is %v, want port 5432", l.ListenerFilters[1])
	}
	if l.GetListenerFiltersTimeout().AsDuration() == 0 || !l.ContinueOnListenerFiltersTimeout {
		t.Error("a server that speaks first may wait for ever")
	}
}

// TestDynamicDNSIsForWhoCan: only sidecars that were built with both halves of the forward proxy, and under no policy
// of their own.
func TestDynamicDNSIsForWhoCan(t *testing.T) {
	own := &value.Sidecar{Meta: value.Meta{Namespace: "shop", Name: "s"},
		SidecarSettings: value.SidecarSettings{Outbound: &value.SidecarOutbound{}}}
	for name, change := range map[string]func(f *scope.Facts){
		"no extension": func(f *scope.Facts) { f.Traits.Filters = 0 },
		"the filter":   func(f *scope.Facts) { f.Traits.Filters = value.ForwardProxyFilter },
		"router":       func(f *scope.Facts) { f.Traits.Type = value.Router },
		"own policy":   func(f *scope.Facts) { f.Sidecar = own },
	} {
		t.Run(name, func(t *testing.T) {
			f := dynamicFacts()
			change(&f)
			b := NewTables().newBase(dynamicMesh().View().Snapshot, f, value.Labels{})
			if _, ok := b.clusters.Get(gen.DynamicDNSOut); ok {
				t.Error("there is a cluster")
			}
			for name, m := range managers(t, b) {
				if slices.ContainsFunc(m.HttpFilters,
					func(f *hcmpb.HttpFilter) bool { return f.Name == "envoy.filters.http.dynamic_forward_proxy" }) {
					t.Errorf("%s has the filter", name)
				}
			}
			rc := &routepb.RouteConfiguration{}
			if r, ok := b.routes.Get("80"); ok {
				unmarshal(t, r.Message(), rc)
				if last := rc.VirtualHosts[len(rc.VirtualHosts)-1]; last.Routes[0].GetRoute().GetCluster() != gen.PassthroughOut {
					t.Errorf("the last virtual host is %v", last)
				}
			}
		})
	}
}

// TestDynamicDNSFollowsServices: a service whose servers speak first changes virtualOutbound, as it would stand from
// scratch; another does not.
func TestDynamicDNSFollowsServices(t *testing.T) {
	builder, tables := dynamicMesh(), NewTables()
	was := builder.View().Snapshot
	b := tables.newBase(was, dynamicFacts(), value.Labels{})
	for _, port := range []*value.Port{{Name: "sql", Number: 3306, Protocol: value.MySQL},
		{Name: "http", Number: 8080, Protocol: value.HTTP}, nil} {
		batch := &snapshottest.Batch{Services: map[value.ServiceKey]*value.Service{}}
		if port != nil {
			addService(batch, port.Name, port)
		} else {
			batch.Services[value.ServiceKey{Host: "sql.shop.svc.cluster.local", Namespace: "shop"}] = nil
		}
		delta := batch.Delta(builder.View())
		builder.Apply(delta)
		n := builder.View().Snapshot
		b = tables.advance(b, n, scope.AffectedBy(was, n, delta))
		got, _ := b.listeners.Get("virtualOutbound")
		want, _ := NewTables().newBase(n, dynamicFacts(), value.Labels{}).listeners.Get("virtualOutbound")
		if got.Version() != want.Version() {
			t.Errorf("after %v virtualOutbound is another one than from scratch", port)
		}
		was = n
	}
}

// TestDynamicDNSResolvers: what a node says of itself decides where names are resolved, and to which family of
// addresses.
func TestDynamicDNSResolvers(t *testing.T) {
	for _, c := range []struct {
		ip, capture, resolver string
		family                clusterpb.Cluster_DnsLookupFamily
	}{
		{"10.0.0.1", "", "", clusterpb.Cluster_V4_ONLY},
		{"10.0.0.1", "true", "127.0.0.1", clusterpb.Cluster_V4_ONLY},
		{"10.0.0.1", "false", "", clusterpb.Cluster_V4_ONLY},
		{"fd00::1", "true", "::1", clusterpb.Cluster_V6_ONLY},
		{"fd00::1,10.0.0.1", "", "", clusterpb.Cluster_V4_ONLY},
	} {
		fields := map[string]*structpb.Value{"INSTANCE_IPS": structpb.NewStringValue(c.ip)}
		if c.capture != "" {
			fields["DNS_CAPTURE"] = structpb.NewStringValue(c.capture)
		}
		p, err := proxy.Accept(&corepb.Node{Id: "sidecar~10.0.0.1~a.shop~shop.svc.cluster.local",
			Metadata: &structpb.Struct{Fields: fields}, Extensions: []*corepb.Extension{
				{TypeUrls: []string{"envoy.extensions.filters.http.dynamic_forward_proxy.v3.FilterConfig"}},
				{TypeUrls: []string{"envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig"}},
			}}, proxy.Peer{})
		if err != nil {
			t.Fatal(err)
		}
		e, ok := NewTables().newBase(dynamicMesh().View().Snapshot, scope.Facts{Namespace: "shop", Traits: p.Traits},
			value.Labels{}).clusters.Get(gen.DynamicDNSOut)
		if !ok {
			t.Fatal("there is no cluster")
		}
		cluster, custom, resolver := &clusterpb.Cluster{}, &dfpclusterpb.ClusterConfig{},
			&carespb.CaresDnsResolverConfig{}
		unmarshal(t, e.Message(), cluster)
		unmarshal(t, cluster.GetClusterType().GetTypedConfig().GetValue(), custom)
		unmarshal(t, custom.GetDnsCacheConfig().GetTypedDnsResolverConfig().GetTypedConfig().GetValue(), resolver)
		at := ""
		if len(resolver.Resolvers) > 0 {
			at = resolver.Resolvers[0].GetSocketAddress().GetAddress()
		}
		if at != c.resolver || custom.GetDnsCacheConfig().GetDnsLookupFamily() != c.family {
			t.Errorf("%s, capture %q: resolver %q, %v", c.ip, c.capture, at,
				custom.GetDnsCacheConfig().GetDnsLookupFamily())
		}
	}
}

// TestDynamicDNSThatIsNotServedIsReported: while a sidecar is connected that was built without it, the mesh's
// configuration says so.
func TestDynamicDNSThatIsNotServedIsReported(t *testing.T) {
	planner, stop := start(newRecorder())
	defer stop()
	var told []checked.Fault
	planner.tables.faults.Tell(func(o value.ObjectKey, list []checked.Fault) {
		if o.Kind == value.KindMeshConfig {
			told = list
		}
	}, nil)
	builder := snapshot.NewBuilder(planner)
	policy := func(mode value.OutboundMode) {
		mesh := testMesh(0)
		mesh.Outbound.Mode = mode
		snapshottest.Apply(builder, &snapshottest.Batch{Mesh: mesh})
	}
	expect := func(n int, when string) {
		t.Helper()
		if err := planner.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(told) != n || n > 0 && (!told[0].NotServed || told[0].Field != "outboundTrafficPolicy.mode") {
			t.Errorf("%s: %+v", when, told)
		}
	}
	with := &proxy.Proxy{ID: "with", Namespace: "shop", Addresses: []string{"10.0.0.1"},
		Traits: value.Traits{IPv4: true, Filters: value.AllFilters}}
	without := &proxy.Proxy{ID: "without", Namespace: "shop", Addresses: []string{"10.0.0.2"},
		Traits: value.Traits{IPv4: true}}
	policy(value.AllowAnyDynamicDNS)
	planner.Attach(1, with)
	expect(0, "a proxy with it")
	planner.Attach(2, without)
	expect(1, "one without")
	policy(value.AllowAny)
	expect(0, "another policy")
	policy(value.AllowAnyDynamicDNS)
	expect(1, "the policy again")
	planner.Detach(2)
	expect(0, "it left")
}
