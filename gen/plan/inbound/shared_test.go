package inbound

import (
	"bytes"
	"testing"

	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot/value"
)

func drawMesh(t *rapid.T) *value.Mesh {
	return istio.Mesh(&meshconfig.MeshConfig{
		TrustDomain:            "cluster.local",
		InboundClusterStatName: rapid.SampledFrom([]string{"", "%SERVICE%_%SERVICE_PORT%"}).Draw(t, "pattern"),
		InboundTrafficPolicy: &meshconfig.MeshConfig_InboundTrafficPolicy{
			Mode: rapid.SampledFrom([]meshconfig.MeshConfig_InboundTrafficPolicy_Mode{0,
				meshconfig.MeshConfig_InboundTrafficPolicy_LOCALHOST}).Draw(t, "inbound"),
		},
	}, "cluster.local", "")
}

func drawProtocol(t *rapid.T) value.Protocol {
	return rapid.SampledFrom([]value.Protocol{value.Auto, value.HTTP, value.HTTP2, value.GRPC, value.GRPCWeb, value.TCP,
		value.TLS, value.Mongo}).Draw(t, "protocol")
}

// TestSharedChains: the chains of a port that are put together out of what all ports of its kind share are those that
// are made for it alone, byte by byte, and ports of a kind do share.
func TestSharedChains(t *testing.T) {
	tables := NewTables(checked.NewFaults())
	rapid.Check(t, func(t *rapid.T) {
		mesh := drawMesh(t)
		draw := func(k gen.InboundChainsKey) gen.InboundChainsKey {
			k.Target, k.Port = rapid.IntRange(1, 65535).Draw(t, "target"),
				rapid.SampledFrom([]int{1, 80, 8080, 20000}).Draw(t, "port")
			k.Host = rapid.SampledFrom([]string{"a", "web.shop.svc.cluster.local"}).Draw(t, "host")
			if mesh.InboundStat != "" {
				k.StatPrefix = k.Host + "_stat"
			}
			return k
		}
		k := draw(gen.InboundChainsKey{
			Mesh: mesh.HTTP, Peers: mesh.Peers, Filters: rapid.SampledFrom([]value.Filters{0, value.AllFilters}).Draw(t, "filters"),
			HTTP10: rapid.Bool().Draw(t, "1.0"),
			Mode:   rapid.SampledFrom([]value.MTLSMode{value.Permissive, value.Strict, value.Disabled}).Draw(t, "mode"),
			Bind:   rapid.SampledFrom([]string{"0.0.0.0", "::", "10.0.0.1"}).Draw(t, "bind"), Protocol: drawProtocol(t),
			Sidecar: rapid.SampledFrom([]value.Meta{{}, {Namespace: "shop", Name: "sidecar"}}).Draw(t, "sidecar"),
		})
		p := tables.chains([]gen.InboundChainsKey{k, draw(k)})
		if want, got := gen.InboundChainFields(gen.InboundChains(k)),
			p[0].chains.Fill(p[0].names.Texts(), nil).Bytes(); !bytes.Equal(got, want) {
			t.Fatalf("got %q\nwant %q", got, want)
		}
		if p[0].chains != p[1].chains {
			t.Fatal("two ports of a kind share nothing")
		}
	})
}

// TestSharedInboundClusters is the same for clusters.
func TestSharedInboundClusters(t *testing.T) {
	tables := NewTables(checked.NewFaults())
	rapid.Check(t, func(t *rapid.T) {
		svc := &value.Service{Name: "web", ServiceKey: value.ServiceKey{Namespace: "shop",
			Host: "web.shop.svc.cluster.local"}}
		port := &value.Port{Name: "p", Number: 80, Protocol: drawProtocol(t)}
		mesh := drawMesh(t)
		k := gen.InboundClusterKey{Mesh: mesh.Connections, Protocol: port.Protocol, IPv4: rapid.Bool().Draw(t, "v4")}
		k.Leads = rapid.SampledFrom([]gen.InboundEndpoint{gen.ToDestination, gen.ToLoopback, gen.ToAddress}).Draw(t,
			"leads")
		if rapid.Bool().Draw(t, "rule") {
			k.Port, k.Rule = port.Number, &value.DestinationRule{Meta: value.Meta{Namespace: "shop", Name: "rule"},
				DestinationPolicy: istio.Policy(&networking.DestinationRule{TrafficPolicy: &networking.TrafficPolicy{
					ConnectionPool: &networking.ConnectionPoolSettings{
						Tcp: &networking.ConnectionPoolSettings_TCPSettings{MaxConnections: 7}},
				}})}
		}
		names := gen.InboundClusterNames{Rule: k.Rule, IPv4: k.IPv4,
			Target: int32(rapid.IntRange(1, 65535).Draw(t, "target"))}
		names.Services = []*value.Service{svc, svc}[:rapid.IntRange(1, 2).Draw(t, "services")]
		if k.Leads == gen.ToAddress {
			names.Default = rapid.SampledFrom([]*gen.IngressEndpoint{{Host: "10.0.0.1", Port: 8080},
				{Host: "fd00::1", Port: 1}, {Host: "unix:///tmp/app"}}).Draw(t, "default")
		}
		names.Stat = gen.InboundClusterStat(mesh, svc, port, int(names.Target))
		c := &cluster{tables.clusters.Get(k), names}
		if want, got := gen.MarshalSorted(gen.InboundCluster(k, names)), c.entry().Message(); !bytes.Equal(got, want) {
			t.Fatalf("got %q\nwant %q", got, want)
		}
	})
}

func BenchmarkEntries(b *testing.B) {
	tables := NewTables(checked.NewFaults())
	m := istio.Mesh(&meshconfig.MeshConfig{TrustDomain: "cluster.local"}, "cluster.local", "")
	k := gen.InboundChainsKey{Mesh: m.HTTP, Peers: m.Peers, Filters: value.AllFilters, Bind: "0.0.0.0",
		Protocol: value.HTTP, Target: 8080, Port: 80, Host: "web.shop.svc.cluster.local"}
	rest := gen.InboundChainsKey{Mesh: m.HTTP, Peers: m.Peers, Filters: value.AllFilters, Protocol: value.Auto}
	header := gen.InboundListenerKey{Name: gen.VirtualInboundName, Bind: "0.0.0.0", Port: 15006}
	svc := &value.Service{Name: "web", ServiceKey: value.ServiceKey{Namespace: "shop", Host: k.Host}}
	inbound := &listener{tables.headers.Get(header), []*encodecache.Fragment{tables.fixed.Get(rest)},
		tables.chains([]gen.InboundChainsKey{k})}
	own := &cluster{tables.clusters.Get(gen.InboundClusterKey{Mesh: m.Connections, IPv4: true}),
		gen.InboundClusterNames{Services: []*value.Service{svc}, IPv4: true, Target: 8080}}
	for name, f := range map[string]func(){
		"listener":      func() { inbound.entry(header.Name) },
		"listener/sent": func() { inbound.entry(header.Name).EncodedAny() },
		"cluster":       func() { own.entry() },
		"cluster/sent":  func() { own.entry().EncodedAny() },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
}
