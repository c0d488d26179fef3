package gen_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot/value"
)

var updateListeners = flag.Bool("update-listeners", false, "write the listeners that come out into testdata/listeners")

func listenerMesh() *value.Mesh {
	return istio.Mesh(&meshconfig.MeshConfig{
		TrustDomain: "cluster.local", TrustDomainAliases: []string{"old.local"}, ProxyListenPort: 15001,
		ProxyInboundListenPort: 15006,
	}, "cluster.local", "")
}

// chainList returns a list of chains; tests need no interning.
func chainList(chains ...gen.ChainKey) (list *gen.ChainList) {
	for i := len(chains) - 1; i >= 0; i-- {
		list = &gen.ChainList{Chain: chains[i], Next: list}
	}
	return list
}

func bytesTo(upstreams gen.Upstreams) gen.ChainKey {
	return gen.ChainKey{TCP: gen.TCPProxyKey{StatPrefix: "stat", Upstreams: upstreams}}
}

// inbound returns virtualInbound's header with the chains of ports.
func inbound(m *value.Mesh, filters value.Filters, ports ...gen.InboundChainsKey) *listenerpb.Listener {
	k := gen.InboundListenerKey{Detection: m.Detection, Name: gen.VirtualInboundName, Bind: "0.0.0.0", Port: 15006,
		Captured: true}
	k.TLS, k.HTTP = gen.Inspections(ports, 15006)
	l := gen.InboundListener(k)
	l.FilterChains = append(l.FilterChains, gen.InboundBlackhole(m.InboundPort, filters))
	for _, p := range ports {
		p.Mesh, p.Peers, p.Filters, p.Bind = m.HTTP, m.Peers, filters, "0.0.0.0"
		l.FilterChains = append(l.FilterChains, gen.InboundChains(p)...)
	}
	return l
}

// listeners returns one of each kind.
func listeners() map[string]*listenerpb.Listener {
	m := listenerMesh()
	http := gen.ChainKey{RouteName: "80", Sniffed: true, GRPCWeb: true}
	sni := bytesTo("outbound|443||a.example.com")
	sni.ServerNames, sni.Prefixes = gen.ServerNames([]string{"b.example.com", "a.example.com"}),
		gen.Prefixes([]string{"10.1.2.3/8", "10.9.9.9"})
	weighted := bytesTo(gen.Upstreams("").Add("outbound|1||a", 80).Add("outbound|2||b", 20))
	weighted.TCP.Protocol, weighted.VirtualService = value.Mongo, value.Meta{Namespace: "shop", Name: "split"}
	weighted.TCP.Policy = gen.TCPPolicy{Idle: value.Duration{Seconds: 60, Set: true},
		MaxDuration: value.Duration{Seconds: 3600, Set: true}, HashSource: true}
	declared := []gen.InboundChainsKey{
		{Protocol: value.Auto},
		{Target: 8080, Port: 80, Protocol: value.GRPC, Host: "web.shop.svc.cluster.local"},
		{Target: 9000, Port: 9000, Protocol: value.TCP, Host: "web.shop.svc.cluster.local"},
		{Target: 9001, Port: 9001, Protocol: value.Auto, Host: "web.shop.svc.cluster.local"},
	}
	locked := []gen.InboundChainsKey{{Protocol: value.Auto, Mode: value.Strict},
		{Target: 8080, Port: 80, Protocol: value.HTTP, Mode: value.Disabled},
		{Target: 7000, Protocol: value.Auto, Undeclared: true, Mode: value.Disabled}}
	return map[string]*listenerpb.Listener{
		"http": gen.OutboundListener(gen.OutboundListenerKey{
			Mesh: m.HTTP, Filters: value.AllFilters, HTTP10: true, Bind: "0.0.0.0", Also: "::", Port: 80,
			Chains: chainList(http), Fallthrough: "PassthroughCluster",
		}),
		"sniffed-upstream": gen.OutboundListener(gen.OutboundListenerKey{
			Mesh: m.HTTP, Bind: "10.96.0.1", Port: 80, Chains: chainList(bytesTo("outbound|80||x"), http),
		}),
		"tcp": gen.OutboundListener(gen.OutboundListenerKey{Bind: "127.0.0.1", Port: 443,
			BindToPort: true, Chains: chainList(sni, weighted)}),
		"virtual-outbound": gen.VirtualOutbound(gen.VirtualOutboundKey{Bind: "::", Port: 15001, Transparent: true,
			Fallthrough: "BlackHoleCluster"}),
		"virtual-inbound":  inbound(m, value.AllFilters, declared...),
		"inbound-upstream": inbound(m, 0, declared...),
		"inbound-locked":   inbound(m, 0, locked...),
		"api": gen.APIListener(gen.APIListenerKey{Name: "web.shop:80", Address: "10.96.0.1", Port: 80,
			RouteName: "outbound|80||web"}),
		"server": gen.ServerListener(gen.ServerListenerKey{Address: "::", Port: 8080}),
		"server-mutual": gen.ServerListener(gen.ServerListenerKey{Address: "::", Port: 8080,
			MutualTLS: true}),
		"bound-not-virtual": gen.InboundListener(gen.InboundListenerKey{Detection: m.Detection, Name: "10.0.0.1_80", Bind: "10.0.0.1",
			Port: 80, TLS: gen.Inspection{Except: "80"}}),
	}
}

// TestListeners holds each kind of listener against its file.
func TestListeners(t *testing.T) {
	for name, l := range listeners() {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata/listeners", name+".json")
			got := listenerJSON(t, l)
			if *updateListeners {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%v: got\n%s", err, got)
			}
			validate(t, l)
			first := gen.Marshal(l)
			for range 100 {
				if !bytes.Equal(first, gen.Marshal(listeners()[name])) {
					t.Fatal("the encoding varies")
				}
			}
		})
	}
}

// TestUpstreamEnvoyGetsNothingOfIstio: a proxy without Istio's filters is sent none of them.
func TestUpstreamEnvoyGetsNothingOfIstio(t *testing.T) {
	for _, name := range []string{"sniffed-upstream", "inbound-upstream", "inbound-locked"} {
		for _, of := range []string{"metadata_exchange", "peer_metadata", "istio.alpn", "TypedStruct",
			`"istio-peer-exchange","h2"`} {
			if strings.Contains(string(gen.Marshal(listeners()[name])), of) {
				t.Errorf("%s has %s", name, of)
			}
		}
	}
}

func listenerJSON(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", " "); err != nil {
		t.Fatal(err)
	}
	return append(out.Bytes(), '\n')
}

// validate checks a message and all that it packs.
func validate(t *testing.T, m proto.Message) {
	t.Helper()
	if v, ok := m.(interface{ ValidateAll() error }); ok {
		if err := v.ValidateAll(); err != nil {
			t.Errorf("%s: %v", m.ProtoReflect().Descriptor().Name(), err)
		}
	}
	if packed, ok := m.(*anypb.Any); ok {
		inner, err := packed.UnmarshalNew()
		if err != nil {
			t.Fatal(err)
		}
		validate(t, inner)
		return
	}
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap() || f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				validate(t, v.List().Get(i).Message().Interface())
			}
		default:
			validate(t, v.Message().Interface())
		}
		return true
	})
}

func TestMatches(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{gen.Prefixes([]string{"10.1.2.3/8", "192.0.2.1", "10.0.0.0/8", "nonsense", "0.0.0.0/0"}),
			"10.0.0.0/8,192.0.2.1/32"},
		{gen.Prefixes([]string{"2001:db8::1/32"}), "2001:db8::/32"},
		{gen.ServerNames([]string{"b", "a", "b"}), "a,b"},
		{gen.ServerNames([]string{"a", "*"}), ""},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestInspections(t *testing.T) {
	port := func(p int, protocol value.Protocol, mode value.MTLSMode) gen.InboundChainsKey {
		return gen.InboundChainsKey{Target: p, Protocol: protocol, Mode: mode}
	}
	for name, c := range map[string]struct {
		ports     []gen.InboundChainsKey
		blackhole int
		tls, http gen.Inspection
	}{
		"nothing declared": {[]gen.InboundChainsKey{port(0, value.Auto, value.Permissive)}, 15006,
			gen.Inspection{true, "15006"}, gen.Inspection{true, "15006"}},
		"declared and sniffed": {[]gen.InboundChainsKey{port(0, value.Auto, value.Permissive),
			port(81, value.Auto, value.Permissive), port(80, value.HTTP, value.Permissive)}, 15006,
			gen.Inspection{true, "15006"}, gen.Inspection{true, "80 15006"}},
		"all strict": {[]gen.InboundChainsKey{port(0, value.Auto, value.Strict),
			port(80, value.HTTP, value.Strict)}, 15006, gen.Inspection{true, "15006"}, gen.Inspection{}},
		"one without": {[]gen.InboundChainsKey{port(0, value.Auto, value.Strict),
			port(80, value.Auto, value.Disabled)}, 15006, gen.Inspection{true, "80 15006"},
			gen.Inspection{true, "0 15006"}},
		"a listener of a port": {[]gen.InboundChainsKey{port(80, value.HTTP, value.Permissive)}, 0,
			gen.Inspection{false, "80"}, gen.Inspection{}},
	} {
		if tls, http := gen.Inspections(c.ports, c.blackhole); tls != c.tls || http != c.http {
			t.Errorf("%s: got %v and %v, want %v and %v", name, tls, http, c.tls, c.http)
		}
	}
}

func BenchmarkListener(b *testing.B) {
	m := listenerMesh()
	http := chainList(gen.ChainKey{RouteName: "80", Sniffed: true})
	tcp := chainList(bytesTo("outbound|9000||web.shop.svc.cluster.local"))
	for name, make := range map[string]func() []byte{
		"http": func() []byte {
			return gen.Marshal(gen.OutboundListener(gen.OutboundListenerKey{Mesh: m.HTTP, Filters: value.AllFilters,
				Bind: "0.0.0.0", Port: 80, Chains: http, Fallthrough: "PassthroughCluster"}))
		},
		"tcp": func() []byte {
			return gen.Marshal(gen.OutboundListener(gen.OutboundListenerKey{Bind: "10.96.0.1", Port: 9000,
				Chains: tcp}))
		},
		"inbound port": func() []byte {
			return gen.InboundChainFields(gen.InboundChains(
				gen.InboundChainsKey{Mesh: m.HTTP, Peers: m.Peers, Filters: value.AllFilters,
					Bind: "0.0.0.0", Target: 8080, Port: 80, Protocol: value.HTTP}))
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				make()
			}
		})
	}
}
