package plan

import (
	"slices"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// egressOf returns what a Sidecar with that spec has outbound, by name: clusters, listeners, route configurations with
// the hosts of their virtual hosts. The services are those of egressBase.
func egressOf(t *testing.T, spec string, interception value.Interception) (clusters, listeners, routes []string) {
	base := egressBase(t, NewTables(), spec, interception)
	for name := range base.clusters.All() {
		if strings.HasPrefix(name, "outbound|") {
			clusters = append(clusters, strings.TrimPrefix(name, "outbound|"))
		}
	}
	for name := range base.listeners.All() {
		listeners = append(listeners, name)
	}
	for name, r := range base.routes.All() {
		for line := range strings.Lines(listed(t, r)) {
			if host, domains, ok := strings.Cut(strings.TrimSpace(line), " ["); ok && domains != "*]" {
				name += " " + host
			}
		}
		routes = append(routes, name)
	}
	return clusters, listeners, routes
}

// egressBase makes the base of a Sidecar with that spec. There are web and db in shop, api in far, all with HTTP at
// port 80, and db with TCP at port 5432.
func egressBase(t *testing.T, tables *Tables, spec string, interception value.Interception) *base {
	b := &snapshottest.Batch{Mesh: testMesh(0), Services: map[value.ServiceKey]*value.Service{}}
	for i, host := range []string{"web.shop", "db.shop", "api.far"} {
		_, ns, _ := strings.Cut(host, ".")
		svc := &value.Service{ServiceKey: value.ServiceKey{Host: host, Namespace: ns}, Name: host,
			Export:    value.Visibility{Public: true},
			Addresses: []string{"10.96.0." + string(rune('1'+i))},
			Ports:     []*value.Port{{Name: "http", Number: 80, Protocol: value.HTTP}}}
		if host == "db.shop" {
			svc.Ports = append(svc.Ports, &value.Port{Name: "pg", Number: 5432, Protocol: value.TCP})
		}
		b.Services[svc.ServiceKey] = svc
	}
	builder := snapshot.NewBuilder(nil)
	snapshottest.Apply(builder, b)
	object := &networking.Sidecar{}
	fromYAML(t, []byte(spec), object)
	s := &value.Sidecar{Meta: value.Meta{Namespace: "shop", Name: "s"}, SidecarSettings: istio.Sidecar(object)}
	f := scope.Facts{Namespace: "shop", Sidecar: s, Traits: value.Traits{IPv4: true, Filters: value.AllFilters,
		Interception: interception}}
	return tables.newBase(builder.View().Snapshot, f, value.Labels{})
}

// TestEgressLeavesOutWhatIsLeftOut: of a service whose cluster can't be made, a Sidecar with a port of its own has
// nothing empty in its place.
func TestEgressLeavesOutWhatIsLeftOut(t *testing.T) {
	tables := NewTables()
	tables.faults.Hook(func(unit any) {
		if k, ok := unit.(gen.ClusterKey); ok && k.Service.Host == "db.shop" {
			panic("as asked")
		}
	})
	base := egressBase(t, tables, "egress: [{port: {number: 80, protocol: HTTP, name: http}, hosts: ['./*']}]", 0)
	clusters := 0
	for name, c := range base.clusters.All() {
		if c.Size() == 0 || strings.HasSuffix(name, "|db.shop") {
			t.Errorf("cluster %q has %d bytes", name, c.Size())
		}
		clusters++
	}
	if _, ok := base.clusters.Get("outbound|80||web.shop"); !ok {
		t.Error("the other service is missing among", clusters)
	}
}

// TestEgressListeners: each listener of a Sidecar's egress has what it imports, where it says, and nothing of what
// others import.
func TestEgressListeners(t *testing.T) {
	for name, c := range map[string]struct {
		spec                        string
		interception                value.Interception
		clusters, listeners, routes []string
	}{
		"a port and the rest": {
			spec:      `{egress: [{port: {number: 80, protocol: HTTP, name: http}, hosts: ["shop/web.shop"]}, {hosts: ["*/*"]}]}`,
			clusters:  []string{"5432||db.shop", "80||api.far", "80||db.shop", "80||web.shop"},
			listeners: []string{"0.0.0.0_80", "10.96.0.2_5432", "virtualOutbound"},
			routes:    []string{"80 web.shop:80"},
		},
		"nothing else": {
			spec:      `{egress: [{port: {number: 5432, protocol: TCP, name: pg}, bind: 127.0.0.1, captureMode: NONE, hosts: ["shop/*"]}, {hosts: ["~/*"]}]}`,
			clusters:  []string{"5432||db.shop"},
			listeners: []string{"127.0.0.1_5432", "virtualOutbound"},
		},
		"an exclusion holds in its listener": {
			spec:      `{egress: [{port: {number: 80, protocol: HTTP, name: http}, hosts: ["*/*", "~far/*"]}, {port: {number: 5432, protocol: TCP, name: pg}, hosts: ["*/*"]}]}`,
			clusters:  []string{"5432||db.shop", "80||db.shop", "80||web.shop"},
			listeners: []string{"0.0.0.0_5432", "0.0.0.0_80", "virtualOutbound"},
			routes:    []string{"80 db.shop:80 web.shop:80"},
		},
		"without interception": {
			spec:         `{egress: [{port: {number: 80, protocol: HTTP, name: http}, hosts: ["far/*"]}]}`,
			interception: value.NoInterception,
			clusters:     []string{"80||api.far"},
			listeners:    []string{"127.0.0.1_80"},
			routes:       []string{"80 api.far:80"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			clusters, listeners, routes := egressOf(t, c.spec, c.interception)
			if !slices.Equal(clusters, c.clusters) {
				t.Errorf("clusters %q, want %q", clusters, c.clusters)
			}
			if !slices.Equal(listeners, c.listeners) {
				t.Errorf("listeners %q, want %q", listeners, c.listeners)
			}
			if !slices.Equal(routes, c.routes) {
				t.Errorf("routes %q, want %q", routes, c.routes)
			}
		})
	}
}
