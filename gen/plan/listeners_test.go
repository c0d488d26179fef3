package plan

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcppb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"golang.org/x/tools/txtar"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	"sigs.k8s.io/yaml"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen/plan/inbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/gen/plan/workload"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/transcript"
	"github.com/pilotd/pilotd/xdstype"
)

var updateListeners = flag.Bool("update-listeners", false, "write the listeners that come out into testdata/listeners")

// TestListeners holds the listeners of a sidecar in the mesh of each testdata/listeners file against its member
// "listeners". The others are
//
//	proxy            settings: namespace=shop, v6, v4, none, unprivileged, tproxy, grpc, label=KEY:VALUE, address=IP
//	services         a service a line: HOST NAMESPACE and settings (see serviceOf)
//	virtualservice   NAMESPACE/NAME AGE, then the spec; rule NAMESPACE/NAME and sidecar NAMESPACE/NAME likewise
//	mesh             the mesh configuration
func TestListeners(t *testing.T) {
	transcript.Each(t, "testdata/listeners/*.txtar", func(t *testing.T, a *transcript.File) {
		got := describeListeners(t, newListenerMesh(t, a.Archive).listeners())
		last := &a.Files[len(a.Files)-1]
		if last.Name != "listeners" {
			t.Fatalf("the last member is %q, not listeners", last.Name)
		}
		if *updateListeners {
			last.Data = []byte(got)
			a.Write(t)
		} else if got != string(last.Data) {
			t.Errorf("got\n%swant\n%s", got, last.Data)
		}
	})
}

// listenerMesh is a mesh and a sidecar in it.
type listenerMesh struct {
	tables *Tables
	snap   *snapshot.Snapshot
	scope  *scope.Scope
	own    *inbound.Facts
}

func newListenerMesh(t testing.TB, a *txtar.Archive) *listenerMesh {
	config := &meshconfig.MeshConfig{RootNamespace: "root",
		TrustDomain: "cluster.local", ProxyListenPort: 15001, ProxyInboundListenPort: 15006}
	b := &snapshottest.Batch{
		Services: map[value.ServiceKey]*value.Service{}, Projections: map[value.ServiceKey]*value.Projection{},
		VirtualServices:  map[value.ObjectKey]*value.VirtualService{},
		DestinationRules: map[value.ObjectKey]*value.DestinationRule{}, Sidecars: map[value.ObjectKey]*value.Sidecar{},
	}
	f, labels, own := scope.Facts{Namespace: "shop", Traits: value.Traits{IPv4: true}}, value.Labels{}, &inbound.Facts{}
	for _, m := range a.Files {
		kind, rest, _ := strings.Cut(m.Name, " ")
		meta, key := objectOf(rest)
		switch kind {
		case "proxy":
			readProxy(t, string(m.Data), &f, labels, own)
		case "services":
			for line := range strings.Lines(string(m.Data)) {
				svc, p := serviceOf(t, strings.Fields(line))
				b.Services[svc.ServiceKey], b.Projections[svc.ServiceKey] = svc, p
			}
		case "virtualservice":
			spec := &networking.VirtualService{}
			fromYAML(t, m.Data, spec)
			spec.Gateways = []string{"mesh"}
			b.VirtualServices[key(value.KindVirtualService)] = &value.VirtualService{Meta: meta,
				Export: value.Visibility{Public: true}, Routing: istio.Routing(spec)}
		case "rule":
			spec := &networking.DestinationRule{}
			fromYAML(t, m.Data, spec)
			b.DestinationRules[key(value.KindDestinationRule)] = &value.DestinationRule{Meta: meta,
				Export: value.Visibility{Public: true}, DestinationPolicy: istio.Policy(spec)}
		case "sidecar":
			spec := &networking.Sidecar{}
			fromYAML(t, m.Data, spec)
			f.Sidecar = &value.Sidecar{Meta: meta, SidecarSettings: istio.Sidecar(spec)}
		case "mesh":
			fromYAML(t, m.Data, config)
		}
	}
	b.Mesh = istio.Mesh(config, "cluster.local", "")
	builder := snapshot.NewBuilder(nil)
	snapshottest.Apply(builder, b)
	w := &listenerMesh{tables: NewTables(), snap: builder.View().Snapshot, own: own}
	w.scope = scope.New(f, labels, w.tables.trims)
	own.Traits, own.Namespace, own.Sidecar = f.Traits, f.Namespace, f.Sidecar
	client := &proxy.Proxy{Namespace: f.Namespace, Addresses: own.Addresses}
	own.Targets = workload.Of(builder.View(), client).Targets()
	for _, svc := range b.Services { // the file says which ports are the workload's own
		for _, p := range svc.Ports {
			if svc.Labels["own"] != "" && p.Protocol != value.UDP {
				w.own.Targets = append(w.own.Targets,
					workload.Target{Service: svc, Port: p, Number: max(p.TargetPort, p.Number)})
			}
		}
	}
	slices.SortFunc(w.own.Targets, func(a, b workload.Target) int { return value.OlderService(a.Service, b.Service) })
	return w
}

func objectOf(s string) (value.Meta, func(value.Kind) value.ObjectKey) {
	name, age, _ := strings.Cut(s, " ")
	ns, name, _ := strings.Cut(name, "/")
	created, _ := strconv.Atoi(age)
	m := value.Meta{Namespace: ns, Name: name, Created: int64(created)}
	return m, func(k value.Kind) value.ObjectKey { return value.ObjectKey{Kind: k, Namespace: ns, Name: name} }
}

func fromYAML(t testing.TB, data []byte, into proto.Message) {
	t.Helper()
	j, err := yaml.YAMLToJSON(data)
	if err == nil {
		err = protojson.Unmarshal(j, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func readProxy(t testing.TB, text string, f *scope.Facts, labels value.Labels, own *inbound.Facts) {
	for w := range strings.FieldsSeq(text) {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "namespace":
			f.Namespace = v
		case "v6":
			f.Traits.IPv6, f.Traits.IPv4 = true, strings.Contains(text, "v4")
		case "v4":
		case "none":
			f.Traits.Interception = value.NoInterception
		case "unprivileged":
			f.Traits.Unprivileged = true
		case "tproxy":
			f.Traits.Interception = value.TProxy
		case "grpc":
			f.Traits.Type = value.Proxyless
		case "label":
			name, l, _ := strings.Cut(v, ":")
			labels[name] = l
		case "address":
			own.Addresses = append(own.Addresses, v)
		default:
			t.Fatalf("proxy: %q", w)
		}
	}
}

// serviceOf reads "HOST NAMESPACE at=IP,IP at=none age=N external dns none only=NS own endpoints=IP,IP
// NAME:PORT:PROTOCOL[:TARGET] ...".
func serviceOf(t testing.TB, words []string) (*value.Service, *value.Projection) {
	s := &value.Service{ServiceKey: value.ServiceKey{Host: words[0], Namespace: words[1]},
		Export: value.Visibility{Public: true}}
	p := &value.Projection{}
	for _, w := range words[2:] {
		k, v, set := strings.Cut(w, "=")
		switch {
		case k == "at":
			s.Addresses = strings.Split(v, ",")
		case k == "age":
			age, _ := strconv.Atoi(v)
			s.Created = int64(age)
		case k == "only":
			s.Export = value.Visibility{Namespaces: []string{v}}
		case k == "alias":
			s.Resolution, s.ExternalName = value.Alias, v
		case k == "endpoints":
			for _, a := range strings.Split(v, ",") {
				p.Inline = append(p.Inline, &value.Endpoint{Addresses: []string{a}})
			}
		case w == "headless":
			s.Headless, s.Resolution = true, value.Passthrough
		case w == "external":
			s.Registry, s.External, s.Resolution = value.RegistryExternal, true, value.DNSLB
		case w == "passthrough":
			s.Registry, s.External, s.Resolution = value.RegistryExternal, true, value.Passthrough
		case w == "own":
			s.Labels = value.Labels{"own": "yes"}
		case !set && strings.Contains(w, ":"):
			f := strings.Split(w+":0", ":")
			number, _ := strconv.Atoi(f[1])
			target, _ := strconv.Atoi(f[3])
			s.Ports = append(s.Ports, &value.Port{Name: f[0], Number: number, Protocol: value.Protocol(f[2]),
				TargetPort: target})
		default:
			t.Fatalf("service %s: %q", words[0], w)
		}
	}
	for _, e := range p.Inline {
		for _, port := range s.Ports {
			e.Ports = append(e.Ports, value.EndpointPort{Name: port.Name, Port: uint32(port.Number)})
		}
	}
	return s, p
}

// listeners returns all listeners of the sidecar, put together as a ResourceSet does.
func (w *listenerMesh) listeners() map[string]*encodecache.Entry {
	out := map[string]*encodecache.Entry{}
	put := func(entries []*encodecache.Entry) {
		for _, e := range entries {
			out[e.Name()] = e
		}
	}
	for svc := range w.scope.Services(w.snap) {
		put(w.tables.AddressListeners(w.snap, w.scope, svc))
	}
	for p := range w.snap.Ports() {
		put(w.tables.WildcardListeners(w.snap, w.scope, p))
	}
	if w.scope.Traits.Type == value.SidecarProxy {
		put(w.tables.StaticListeners(w.snap, w.scope))
	}
	sees := func(host string) bool { return w.scope.Service(w.snap, host) != nil }
	for _, e := range w.tables.inbound.Overlay(w.snap, w.own, sees, nil).Edits(xdstype.Listener) {
		if out[e.Key] = e.Value; e.Delete {
			delete(out, e.Key)
		}
	}
	return out
}

// describeListeners writes listeners one after the other, each with its chains and inspectors.
func describeListeners(t testing.TB, entries map[string]*encodecache.Entry) string {
	var out strings.Builder
	for _, name := range slices.Sorted(mapKeys(entries)) {
		l := &listenerpb.Listener{}
		if err := proto.Unmarshal(entries[name].Message(), l); err != nil {
			t.Fatal(err)
		}
		if err := l.ValidateAll(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		fmt.Fprint(&out, l.Name)
		for _, a := range l.AdditionalAddresses {
			fmt.Fprint(&out, " and ", a.Address.GetSocketAddress().Address)
		}
		if l.BindToPort == nil && l.ApiListener == nil {
			fmt.Fprint(&out, ", bound")
		}
		if l.Transparent.GetValue() {
			fmt.Fprint(&out, ", transparent")
		}
		for _, f := range l.ListenerFilters {
			fmt.Fprint(&out, ", ", strings.TrimPrefix(f.Name, "envoy.filters.listener."))
		}
		fmt.Fprintln(&out)
		if api := l.GetApiListener().GetApiListener(); api != nil {
			m := &hcmpb.HttpConnectionManager{}
			if err := api.UnmarshalTo(m); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "  routes %s\n", m.GetRds().GetRouteConfigName())
		}
		for _, c := range l.FilterChains {
			fmt.Fprintf(&out, "  %s%s\n", describeChain(t, c), describeMatch(c))
		}
		if c := l.DefaultFilterChain; c != nil {
			fmt.Fprintf(&out, "  else %s\n", describeChain(t, c))
		}
	}
	return out.String()
}

func mapKeys[V any](m map[string]V) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func describeChain(t testing.TB, c *listenerpb.FilterChain) string {
	var out []string
	for _, f := range c.Filters {
		m, err := f.GetTypedConfig().UnmarshalNew()
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *hcmpb.HttpConnectionManager:
			out = append(out, "http "+m.GetRds().GetRouteConfigName()+m.GetRouteConfig().GetName())
		case *tcppb.TcpProxy:
			to := m.GetCluster()
			for _, w := range m.GetWeightedClusters().GetClusters() {
				to += fmt.Sprintf("%d%% %s ", w.Weight, w.Name)
			}
			out = append(out, "tcp "+strings.TrimSpace(to))
			if m.IdleTimeout != nil {
				out = append(out, "idle "+m.IdleTimeout.AsDuration().String())
			}
		default:
			out = append(out, strings.TrimPrefix(f.Name, "envoy.filters.network."))
		}
	}
	if c.TransportSocket != nil {
		out = append(out, "ends TLS")
	}
	return strings.Join(out, ", ")
}

func describeMatch(c *listenerpb.FilterChain) string {
	var out []string
	m := c.FilterChainMatch
	if p := m.GetDestinationPort(); p != nil {
		out = append(out, fmt.Sprint("port ", p.Value))
	}
	out = append(out, m.GetServerNames()...)
	for _, p := range m.GetPrefixRanges() {
		out = append(out, fmt.Sprintf("%s/%d", p.AddressPrefix, p.PrefixLen.GetValue()))
	}
	if m.GetTransportProtocol() != "" {
		out = append(out, m.TransportProtocol)
	}
	out = append(out, m.GetApplicationProtocols()...)
	if len(out) == 0 {
		return ""
	}
	return " if " + strings.Join(out, " ")
}
