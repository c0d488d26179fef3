package plan

import (
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Each row is the egress of a Sidecar and the services that its clients in namespace a see: "host/namespace", by host.
// There are x and y in a and b, and z in c for a alone and in b for all.
func TestScopeOfSidecar(t *testing.T) {
	b := &snapshottest.Batch{Mesh: booksMesh(), Services: map[value.ServiceKey]*value.Service{}}
	add := func(host, namespace string, export value.Visibility) {
		k := value.ServiceKey{Host: host, Namespace: namespace}
		b.Services[k] = &value.Service{ServiceKey: k, Registry: value.RegistryExternal, Export: export,
			Ports: []*value.Port{{Name: "http", Number: 80, Protocol: value.HTTP}}}
	}
	public := value.Visibility{Public: true}
	for _, ns := range []string{"a", "b"} {
		add("x.example", ns, public)
		add("y.example", ns, public)
	}
	add("z.example", "b", public)
	add("z.example", "c", value.Visibility{Namespaces: []string{"a"}})
	b.VirtualServices = map[value.ObjectKey]*value.VirtualService{}
	to := func(name, source string) *networking.HTTPRoute {
		return &networking.HTTPRoute{
			Match: []*networking.HTTPMatchRequest{{SourceNamespace: source}},
			Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: name}}}}
	}
	vs := &value.VirtualService{Meta: value.Meta{Namespace: "v", Name: "v"}, Export: public,
		Routing: istio.Routing(&networking.VirtualService{
			Hosts: []string{"v.example"}, Gateways: []string{"mesh"}, Http: []*networking.HTTPRoute{to("z.example", ""),
				to("y.example", "b")}})}
	b.VirtualServices[value.ObjectKey{Kind: value.KindVirtualService, Namespace: "v", Name: "v"}] = vs
	builder := snapshot.NewBuilder(nil)
	snapshottest.Apply(builder, b)
	n := builder.View().Snapshot

	for egress, want := range map[string]string{
		"":                       "x.example/a y.example/a z.example/c",
		"*/*":                    "x.example/a y.example/a z.example/c",
		"./*":                    "x.example/a y.example/a", // the client's namespace, wherever the Sidecar is
		"b/*":                    "x.example/b y.example/b z.example/b",
		"*/y.example":            "y.example/a",
		"*/*.example b/x.nobody": "x.example/a y.example/a z.example/c",
		"*/* ~b/*":               "x.example/a y.example/a z.example/c",
		"*/* ~./*":               "x.example/b y.example/b z.example/c",
		"*/* ~*/z.example":       "x.example/a y.example/a",
		"~/*":                    "",
		"v/*":                    "z.example/b", // where a VirtualService leads to, of the first namespace
	} {
		tables := NewTables()
		f := scope.Facts{Namespace: "a"}
		if egress != "" {
			f.Sidecar = &value.Sidecar{Meta: value.Meta{Namespace: "root", Name: "s"}, SidecarSettings: value.SidecarSettings{
				Egress: []*value.EgressListener{{Hosts: strings.Fields(egress)}}}}
		}
		var got []string
		for svc := range scopeOf(tables, f).Services(n) {
			got = append(got, svc.Host+"/"+svc.Namespace)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %v, want %s", egress, got, want)
		}
	}
}
