package plan

import (
	"slices"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// egressOf returns what a Sidecar with that spec has outbound, by name: clusters, listeners, route configurations with
// the hosts of their virtual hosts. There are web and db in shop, api in far, all with HTTP at port 80, and db with TCP
// at port 5432.
func egressOf(t *testing.T, spec string, interception value.Interception) (clusters, listeners, routes []string) {
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
	base := NewTables().newBase(builder.View().Snapshot, f, value.Labels{})
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
