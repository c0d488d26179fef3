package plan

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen/plan/gateway"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/gen/plan/workload"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/transcript"
)

var updateHosts = flag.Bool("update-hosts", false, "write the virtual hosts that come out into testdata/virtualhosts")

// TestVirtualHosts holds who has which virtual host, and under which domains, against testdata/virtualhosts. The member
// "mesh" has one object a line; "ask NAMESPACE PORT" or "router NAMESPACE LABEL=VALUE" is followed by what proxies
// there have:
//
//	service HOST NAMESPACE [port=80/HTTP,…] [ip=A,…] [headless] [external] [alias=HOST] [export=NAMESPACE,…] [created=N]
//	virtualservice NAMESPACE/NAME host=H,… [to=HOST] [match=…] [source=NAMESPACE] [bind=GATEWAY,…] [export=…] [created=N]
//	gateway NAMESPACE/NAME LABEL=VALUE server=PORT/PROTOCOL/HOST;…
//	sidecar NAMESPACE NAMESPACE/HOST,…
func TestVirtualHosts(t *testing.T) {
	transcript.Each(t, "testdata/virtualhosts/*.txtar", func(t *testing.T, a *transcript.File) {
		var n *snapshot.Snapshot
		for i := range a.Files {
			f := &a.Files[i]
			if f.Name == "mesh" {
				n = meshOf(t, string(f.Data))
				continue
			}
			got := hostsFor(t, n, strings.Fields(f.Name))
			if *updateHosts {
				f.Data = got
			} else if !bytes.Equal(got, f.Data) {
				t.Errorf("%s: got\n%swant\n%s", f.Name, got, f.Data)
			}
		}
		if *updateHosts {
			a.Write(t)
		}
	})
}

// hostsFor lists the virtual hosts of the route configurations that a question is about.
func hostsFor(t *testing.T, n *snapshot.Snapshot, question []string) []byte {
	f := scope.Facts{Namespace: question[1], Traits: value.Traits{IPv4: true, Filters: value.AllFilters}}
	labels := value.Labels{}
	if question[0] == "router" {
		f.Traits.Type = value.Router
		k, v, _ := strings.Cut(question[2], "=")
		labels[k] = v
		f.OwnPorts = gateway.OwnPorts(workload.Of(&snapshot.View{Snapshot: n, Endpoints: &snapshot.EndpointTable{}},
			&proxy.Proxy{Namespace: f.Namespace, Labels: proxy.PackLabels(labels)}))
	} else if strings.HasSuffix(question[0], "6") {
		f.Traits.IPv4, f.Traits.IPv6 = false, true
	}
	for s := range n.SidecarsIn(f.Namespace) {
		f.Sidecar = s
	}
	f.Labels = value.LabelsKey(labels)
	b := NewTables().newBase(n, f, labels)
	var out bytes.Buffer
	for name, e := range b.routes.All() {
		if question[0] != "router" && name != question[2] {
			continue
		}
		if question[0] == "router" {
			fmt.Fprintf(&out, "%s\n", name)
		}
		out.WriteString(listed(t, e))
	}
	return out.Bytes()
}

// listed returns the virtual hosts of a route configuration, one a line, with their domains and what they lead to.
func listed(t testing.TB, e *encodecache.Entry) string {
	t.Helper()
	rc := &routepb.RouteConfiguration{}
	if err := proto.Unmarshal(e.Message(), rc); err != nil {
		t.Fatal(err)
	}
	if err := rc.ValidateAll(); err != nil {
		t.Error(err)
	}
	if e.Size() != len(e.Message()) {
		t.Errorf("%s: size %d, has %d bytes", e.Name(), e.Size(), len(e.Message()))
	}
	var out strings.Builder
	domains := map[string]bool{}
	for _, vh := range rc.GetVirtualHosts() {
		fmt.Fprintf(&out, "%s %s %v\n", vh.GetName(), vh.GetRequireTls(), vh.GetDomains())
		for _, d := range vh.GetDomains() {
			if domains[d] {
				t.Errorf("%s: domain %s twice", e.Name(), d)
			}
			domains[d] = true
		}
		for _, r := range vh.GetRoutes() {
			from := r.GetMetadata().GetFilterMetadata()["istio"].GetFields()["config"].GetStringValue()
			fmt.Fprintf(&out, "    %s %s %s\n", r.GetMatch().GetPrefix(), r.GetRoute().GetCluster(),
				from[strings.LastIndexByte(from, '/')+1:])
		}
	}
	return strings.ReplaceAll(out.String(), " NONE ", " ")
}

// meshOf reads a mesh.
func meshOf(t testing.TB, text string) *snapshot.Snapshot {
	b := &snapshottest.Batch{
		Mesh: routeMesh(), Services: map[value.ServiceKey]*value.Service{},
		VirtualServices: map[value.ObjectKey]*value.VirtualService{},
		Gateways:        map[value.ObjectKey]*value.Gateway{}, Sidecars: map[value.ObjectKey]*value.Sidecar{},
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		words := strings.Fields(line)
		o := objectLine{words: words[2:], set: map[string]string{}}
		for _, w := range words[2:] {
			k, v, _ := strings.Cut(w, "=")
			o.set[k] = v
		}
		switch words[0] {
		case "service":
			s := o.service(words[1], words[2])
			b.Services[s.ServiceKey] = s
		case "virtualservice":
			vs := o.virtualService(words[1])
			b.VirtualServices[value.ObjectKey{Kind: value.KindVirtualService, Namespace: vs.Namespace,
				Name: vs.Name}] = vs
		case "gateway":
			g := o.gateway(words[1])
			b.Gateways[value.ObjectKey{Kind: value.KindGateway, Namespace: g.Namespace, Name: g.Name}] = g
		case "sidecar":
			sc := &value.Sidecar{Meta: value.Meta{Namespace: words[1], Name: "default"}, SidecarSettings: value.SidecarSettings{
				Egress: []*value.EgressListener{{Hosts: strings.Split(words[2], ",")}},
			}}
			b.Sidecars[value.ObjectKey{Kind: value.KindSidecar, Namespace: words[1], Name: "default"}] = sc
		default:
			t.Fatalf("what is %q?", line)
		}
	}
	builder := snapshot.NewBuilder(silent{})
	snapshottest.Apply(builder, b)
	return builder.View().Snapshot
}

func routeMesh() *value.Mesh {
	return istio.Mesh(&meshconfig.MeshConfig{RootNamespace: "root", TrustDomain: "cluster.local"}, "cluster.local", "c1")
}

type silent struct{}

func (silent) Publish(*snapshot.View, *snapshot.Delta) {}

// objectLine is a line of a mesh: its words, and those of the form key=value.
type objectLine struct {
	words []string
	set   map[string]string
}

func (o objectLine) list(k string) []string {
	if o.set[k] == "" {
		return nil
	}
	return strings.Split(o.set[k], ",")
}

func (o objectLine) created() int64 {
	n, _ := strconv.ParseInt(o.set["created"], 10, 64)
	return n
}

func (o objectLine) service(host, namespace string) *value.Service {
	name, _, _ := strings.Cut(host, ".")
	s := &value.Service{
		ServiceKey: value.ServiceKey{Host: host, Namespace: namespace}, Name: name, Created: o.created(),
		Addresses:    o.list("ip"),
		Export:       value.NewVisibility(o.list("export"), nil, namespace),
		Headless:     slices.Contains(o.words, "headless"),
		ExternalName: o.set["alias"],
	}
	s.Selector = value.Labels{"app": name}
	if slices.Contains(o.words, "external") {
		s.Registry, s.External, s.Selector = value.RegistryExternal, true, nil
	}
	if s.ExternalName != "" {
		s.Resolution = value.Alias
	}
	for _, p := range o.list("port") {
		number, protocol, _ := strings.Cut(p, "/")
		n, _ := strconv.Atoi(number)
		if protocol == "Auto" {
			protocol = string(value.Auto)
		}
		s.Ports = append(s.Ports, &value.Port{Name: "p" + number, Number: n, Protocol: value.Protocol(protocol),
			TargetPort: n + 8000})
	}
	return s
}

func (o objectLine) virtualService(key string) *value.VirtualService {
	ns, name, _ := strings.Cut(key, "/")
	r := &networking.HTTPRoute{Route: []*networking.HTTPRouteDestination{{
		Destination: &networking.Destination{Host: o.set["to"]}}}}
	if o.set["source"]+o.set["match"] != "" {
		m := &networking.HTTPMatchRequest{SourceNamespace: o.set["source"]}
		if o.set["match"] != "" {
			m.Uri = &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: o.set["match"]}}
		}
		r.Match = []*networking.HTTPMatchRequest{m}
	}
	bind := o.list("bind")
	if bind == nil {
		bind = []string{"mesh"}
	}
	return &value.VirtualService{
		Meta: value.Meta{Namespace: ns, Name: name, Created: o.created()}, Export: value.NewVisibility(o.list("export"),
			nil, ns),
		Routing: istio.Routing(&networking.VirtualService{Hosts: o.list("host"), Gateways: bind,
			Http: []*networking.HTTPRoute{r}}),
	}
}

func (o objectLine) gateway(key string) *value.Gateway {
	ns, name, _ := strings.Cut(key, "/")
	k, v, _ := strings.Cut(o.words[0], "=")
	g := &value.Gateway{Meta: value.Meta{Namespace: ns, Name: name, Created: o.created()},
		GatewaySettings: value.GatewaySettings{Workload: value.Labels{k: v}}}
	for i, s := range strings.Split(o.set["server"], ";") {
		parts := strings.SplitN(s, "/", 3)
		n, _ := strconv.Atoi(parts[0])
		server := &value.Server{Port: value.ListenerPort{Number: n, Name: fmt.Sprint("s", i),
			Protocol: value.Protocol(parts[1])}}
		for h := range strings.SplitSeq(parts[2], ",") {
			namespace, host, ok := strings.Cut(h, "/")
			if !ok {
				namespace, host = "*", h
			}
			server.Hosts = append(server.Hosts, value.ServerHost{Namespace: namespace, Host: host})
		}
		if parts[1] == "REDIRECT" {
			server.Port.Protocol, server.Redirect = value.HTTP, true
			server.TLS = &value.ServerTLS{Mode: value.PassthroughTLS}
		} else if parts[1] == "HTTPS" {
			server.TLS = &value.ServerTLS{Mode: value.SimpleTLS, Credentials: []string{"cert"}}
		}
		g.Servers = append(g.Servers, server)
	}
	return g
}

// TestRelatedHosts: whatever service or VirtualService comes or goes, only the virtual hosts of its hosts and of those
// related to them change.
func TestRelatedHosts(t *testing.T) {
	for _, a := range transcript.Read(t, "testdata/virtualhosts/*.txtar") {
		text := strings.TrimSpace(string(a.Files[0].Data))
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			with, without := meshOf(t, text), meshOf(t, strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "\n"))
			checkRelated(t, with, without, line)
		}
	}
}

func checkRelated(t *testing.T, with, without *snapshot.Snapshot, line string) {
	tables := NewTables()
	words := strings.Fields(line)
	d := &snapshot.Delta{}
	switch words[0] {
	case "service":
		k := value.ServiceKey{Host: words[1], Namespace: words[2]}
		d.Services.Add(k, with.Service(k), without.Service(k))
	case "virtualservice":
		ns, name, _ := strings.Cut(words[1], "/")
		k := value.ObjectKey{Kind: value.KindVirtualService, Namespace: ns, Name: name}
		d.Objects.Add(k, with.Object(k), without.Object(k))
	default:
		return
	}
	marked := scope.AffectedBy(with, without, d).Routes
	for _, ns := range []string{"a", "b"} {
		sc := scope.New(scope.Facts{Namespace: ns, Traits: value.Traits{IPv4: true}}, nil, tables.trims)
		for _, port := range []int{80, 8080} {
			before, after := sumsOf(tables, with, sc, port), sumsOf(tables, without, sc, port)
			for h := range maps.Keys(merged(before, after)) {
				if before[h] == after[h] {
					continue
				}
				if _, ok := marked[h]; !ok {
					t.Errorf("without %q the virtual host of %s on port %d for %s is another, and nothing says so",
						line, h, port, ns)
				}
			}
		}
	}
}

func merged(a, b map[string]encodecache.Sum) map[string]encodecache.Sum {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

func sumsOf(tables *Tables, n *snapshot.Snapshot, sc *scope.Scope, port int) map[string]encodecache.Sum {
	out := map[string]encodecache.Sum{}
	hosts := map[string]bool{}
	for svc := range n.Services() {
		hosts[svc.Host] = true
	}
	for vs := range n.VirtualServicesOfGateway("mesh") {
		for _, h := range vs.Hosts {
			hosts[h] = true
		}
	}
	for h := range hosts {
		if f := tables.VirtualHostOf(sc.OnPort(n, port, nil), h); f != nil {
			out[h] = f.Sum()
		}
	}
	return out
}
