package plan

import (
	"slices"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/envoytext"
	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// usualRegex is an expression as people write them, which an upstream Envoy refuses and Istio's proxy takes.
const usualRegex = "/users/[0-9a-f-]{36}/.*"

// regexRoute returns a VirtualService in namespace a that matches an expression.
func regexRoute(name, host, expression string, gateways ...string) (value.ObjectKey, *value.VirtualService) {
	r := to("two.a.svc.cluster.local")
	vs := &value.VirtualService{Meta: value.Meta{Namespace: "a", Name: name}, Export: value.Visibility{Public: true}}
	r.Match, vs.RegexSize = matchRegex(expression)
	vs.Routing = istio.Routing(&networking.VirtualService{
		Hosts: []string{host}, Gateways: gateways, Http: []*networking.HTTPRoute{r, to("two.a.svc.cluster.local")},
	})
	return value.ObjectKey{Kind: value.KindVirtualService, Namespace: "a", Name: name}, vs
}

func (w *faultMesh) put(key value.ObjectKey, vs *value.VirtualService) {
	snapshottest.Apply(
		w.builder,
		&snapshottest.Batch{VirtualServices: map[value.ObjectKey]*value.VirtualService{key: vs}},
	)
	w.settle()
}

// parts returns a proxy's virtual hosts of port 80, those that are left out too.
func (w *faultMesh) parts(id uint64) map[string]*encodecache.Fragment {
	out := map[string]*encodecache.Fragment{}
	e, _ := w.sink.sets[w.sink.classes[id]].Sections.Of(xdstype.Route).Get("80")
	for f := range e.Parts() {
		if p := checked.PartOf(f); p != "header" {
			out[p] = f
		}
	}
	return out
}

// join attaches a proxy with the filters and the type given.
func (w *faultMesh) join(id uint64, filters value.Filters, typ value.NodeType) {
	p := &proxy.Proxy{ID: "p", Namespace: "a", Addresses: []string{"10.0.1.1"}, ClusterID: "Kubernetes",
		Labels: proxy.PackLabels(nil)}
	p.Traits.IPv4, p.Traits.Filters, p.Traits.Type = true, filters, typ
	w.planner.Attach(id, p)
	w.settle()
}

// TestRegexFollowsTheProxy: a regular expression that is too large for an upstream Envoy takes the virtual host from
// upstream Envoys alone. All other virtual hosts are the same for both, and so is this one once the expression is
// small.
func TestRegexFollowsTheProxy(t *testing.T) {
	w := newFaultMesh(t, nil)
	const istio, upstream = 1, 3
	w.join(upstream, 0, value.SidecarProxy)
	both := []string{hostOne, hostTwo}
	same := func(name string) bool { return w.parts(istio)[name] == w.parts(upstream)[name] }
	key, small := regexRoute("users", "one.a.svc.cluster.local", "/users/.*", "mesh")
	w.put(key, small)
	if !slices.Equal(w.hosts(upstream), both) || !same(hostOne) || !same(hostTwo) {
		t.Errorf("a small expression: upstream has %v, shared %v %v", w.hosts(upstream), same(hostOne), same(hostTwo))
	}
	_, large := regexRoute("users", "one.a.svc.cluster.local", usualRegex, "mesh")
	w.put(key, large)
	if got := w.hosts(istio); !slices.Equal(got, both) {
		t.Errorf("Istio's proxy has %v", got)
	}
	if got := w.hosts(upstream); !slices.Equal(got, []string{hostTwo}) || !same(hostTwo) {
		t.Errorf("an upstream Envoy has %v, shared: %v", got, same(hostTwo))
	}
	got := w.faults(key)
	if len(got) != 1 || got[0].Resource != "virtual host "+hostOne || got[0].Field != "routes[0].match.safe_regex" ||
		!strings.Contains(got[0].Reason, "122 instructions, at most 100") {
		t.Errorf("told %v", got)
	}
	w.join(4, value.DynamicForwardProxy, value.SidecarProxy) // it starts in the middle of it
	if got := w.hosts(4); !slices.Equal(got, []string{hostTwo}) {
		t.Errorf("another upstream Envoy has %v", got)
	}
	w.put(key, small)
	if !slices.Equal(w.hosts(upstream), both) || !same(hostOne) || len(w.faults(key)) != 0 {
		t.Errorf("small again: upstream has %v, told %v", w.hosts(upstream), w.faults(key))
	}
}

// TestRegexOfOtherPorts: what of a VirtualService is not in a virtual host takes nothing from it.
func TestRegexOfOtherPorts(t *testing.T) {
	w := newFaultMesh(t, nil)
	w.join(3, 0, value.SidecarProxy)
	key, vs := regexRoute("users", "one.a.svc.cluster.local", usualRegex, "mesh")
	vs.HTTP[0].Matches[0].Port = 8080
	w.put(key, vs)
	if got := w.hosts(3); len(got) != 2 || len(w.faults(key)) != 0 {
		t.Errorf("virtual hosts %v, told %v", got, w.faults(key))
	}
}

// TestRegexLimit: gRPC clients have no limit, and a deployment can raise that of its upstream Envoys.
func TestRegexLimit(t *testing.T) {
	tables := NewTables()
	for _, c := range []struct {
		traits     value.Traits
		size, want int
	}{
		{value.Traits{}, 100, 0}, {value.Traits{}, 101, 100}, {value.Traits{Type: value.Router}, 101, 100},
		{value.Traits{Type: value.Proxyless}, 101, 0},
		{value.Traits{Filters: value.AllFilters}, 32768, 0}, {value.Traits{Filters: value.ALPN}, 101, 0},
		{value.Traits{Filters: value.DynamicForwardProxy}, 101, 100},
	} {
		if got := tables.RegexLimit(c.traits, c.size); got != c.want {
			t.Errorf("%+v, size %d: limit %d, want %d", c.traits, c.size, got, c.want)
		}
	}
	tables.LimitRegex(envoytext.IstioRegexSize)
	if got := tables.RegexLimit(value.Traits{}, 122); got != 0 {
		t.Errorf("raised: limit %d", got)
	}
}

// TestRegexOfGateways: of several VirtualServices for a host of an upstream gateway the one with a large expression is
// left out alone; Istio's gateway has both.
func TestRegexOfGateways(t *testing.T) {
	m := edgeMesh(1)
	told := map[value.ObjectKey][]checked.Fault{}
	m.tables.faults.Tell(func(o value.ObjectKey, list []checked.Fault) { told[o] = list }, nil)
	key, vs := regexRoute("users", "h0.example.com", usualRegex, "gw/all")
	m.putService(vs)
	labels := value.Labels{"app": "edge"}
	text := func(filters value.Filters) string {
		f := scope.Facts{Namespace: "gw", Labels: value.LabelsKey(labels), Traits: value.Traits{Type: value.Router,
			IPv4: true, Filters: filters}}
		var out strings.Builder
		for _, e := range m.tables.newBase(m.builder.View().Snapshot, f, labels).routes.All() {
			out.Write(e.Message())
		}
		return out.String()
	}
	if got := text(value.AllFilters); !strings.Contains(got, "0-9a-f-") {
		t.Errorf("Istio's gateway has %q", got)
	}
	if got := text(0); strings.Contains(got, "0-9a-f-") || !strings.Contains(got, "h0.example.com") ||
		!strings.Contains(got, "virtual-service/r0") {
		t.Errorf("the upstream gateway has %q", got)
	}
	if len(told[key]) == 0 {
		t.Errorf("told %v", told)
	}
}
