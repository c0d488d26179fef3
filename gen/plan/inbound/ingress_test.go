package inbound

import (
	"fmt"
	"strings"
	"testing"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	"sigs.k8s.io/yaml"

	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/gen/plan/workload"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// ingressClusters returns the inbound clusters of a proxy whose Sidecar object has that spec, one a line: name, type,
// address, source address, limit of connections, service. The workload serves web.shop at port 8080, with a
// DestinationRule that sets a limit of 7.
func ingressClusters(t *testing.T, spec string, traits value.Traits, addresses ...string) string {
	host := "web.shop.svc.cluster.local"
	svc := &value.Service{ServiceKey: value.ServiceKey{Host: host, Namespace: "shop"}, Name: "web",
		Export: value.Visibility{Public: true},
		Ports:  []*value.Port{{Name: "http", Number: 80, TargetPort: 8080, Protocol: value.HTTP}}}
	rule := &value.DestinationRule{Meta: value.Meta{Namespace: "shop", Name: "web"},
		Export: value.Visibility{Public: true}, DestinationPolicy: istio.Policy(&networking.DestinationRule{
			Host: host, TrafficPolicy: &networking.TrafficPolicy{ConnectionPool: &networking.ConnectionPoolSettings{
				Tcp: &networking.ConnectionPoolSettings_TCPSettings{MaxConnections: 7}}}})}
	b := &snapshottest.Batch{Mesh: istio.Mesh(&meshconfig.MeshConfig{RootNamespace: "root"}, "cluster.local", ""),
		Services: map[value.ServiceKey]*value.Service{svc.ServiceKey: svc},
		DestinationRules: map[value.ObjectKey]*value.DestinationRule{
			{Kind: value.KindDestinationRule, Namespace: "shop", Name: "web"}: rule}}
	builder := snapshot.NewBuilder(nil)
	snapshottest.Apply(builder, b)
	tables := NewTables(checked.NewFaults())
	object := &networking.Sidecar{}
	j, err := yaml.YAMLToJSON([]byte(spec))
	if err == nil {
		err = protojson.Unmarshal(j, object)
	}
	if err != nil {
		t.Fatal(err)
	}
	sidecar := &value.Sidecar{Meta: value.Meta{Namespace: "root", Name: "all"}, SidecarSettings: istio.Sidecar(object)}
	facts := &Facts{Traits: traits, Namespace: "shop", Sidecar: sidecar, Addresses: addresses,
		Targets: []workload.Target{{Service: svc, Port: svc.Ports[0], Number: 8080}}}
	overlay := tables.Overlay(builder.View().Snapshot, facts, func(string) bool { return true }, nil)
	var out strings.Builder
	for _, edit := range overlay.Edits(xdstype.Cluster) {
		c := &clusterpb.Cluster{}
		if err := proto.Unmarshal(edit.Value.Message(), c); err != nil {
			t.Fatal(err)
		}
		if err := c.ValidateAll(); err != nil {
			t.Error(err)
		}
		at := "-"
		if l := c.GetLoadAssignment(); l != nil {
			a := l.GetEndpoints()[0].GetLbEndpoints()[0].GetEndpoint().GetAddress()
			at = fmt.Sprintf("%s%s:%d", a.GetPipe().GetPath(), a.GetSocketAddress().GetAddress(),
				a.GetSocketAddress().GetPortValue())
		}
		services := c.GetMetadata().GetFilterMetadata()["istio"].GetFields()["services"].GetListValue().GetValues()
		service := services[0].GetStructValue().GetFields()
		fmt.Fprintf(&out, "%s %s %s from=%s max=%d %s/%s\n", c.GetName(), c.GetType(), at,
			c.GetUpstreamBindConfig().GetSourceAddress().GetAddress(),
			int32(c.GetCircuitBreakers().GetThresholds()[0].GetMaxConnections().GetValue()),
			service["namespace"].GetStringValue(), service["host"].GetStringValue())
	}
	return out.String()
}

// TestIngressClusters: the ports that a Sidecar declares have clusters, which lead to their default endpoints.
func TestIngressClusters(t *testing.T) {
	four, six := value.Traits{IPv4: true}, value.Traits{IPv6: true}
	none := value.Traits{IPv4: true, Interception: value.NoInterception}
	port := func(number int, rest string) string {
		return fmt.Sprintf(`{port: {number: %d, protocol: HTTP, name: p%d}%s}`, number, number, rest)
	}
	list := func(ports ...string) string { return `{ingress: [` + strings.Join(ports, ", ") + `]}` }
	for _, r := range []struct {
		name, spec string
		traits     value.Traits
		addresses  []string
		want       string
	}{
		{"loopback", list(port(8080, `, defaultEndpoint: "127.0.0.1:18080"`)), four, nil,
			"inbound|8080|| STATIC 127.0.0.1:18080 from= max=7 shop/web.shop.svc.cluster.local\n"},
		{"without interception", list(port(9, `, defaultEndpoint: "127.0.0.1:18080"`)), none, nil,
			"inbound|9|| STATIC 127.0.0.1:18080 from= max=-1 shop/all.shop\n"},
		{"own address", list(port(9, `, defaultEndpoint: "0.0.0.0:9001"`)), four, []string{"fd00::1", "10.0.0.1"},
			"inbound|9|| STATIC 10.0.0.1:9001 from=127.0.0.6 max=-1 shop/all.shop\n"},
		{"own IPv6 address", list(port(9, `, defaultEndpoint: "[::]:9001"`)), six, []string{"fd00::1"},
			"inbound|9|| STATIC fd00::1:9001 from=::6 max=-1 shop/all.shop\n"},
		{"no address of that family", list(port(9, `, defaultEndpoint: "[::]:9001"`)), four, []string{"10.0.0.1"},
			"inbound|9|| STATIC ::1:9001 from= max=-1 shop/all.shop\n"},
		{"loopback of the other family", list(port(9, `, defaultEndpoint: "127.0.0.1:1"`),
			port(10, `, defaultEndpoint: "[::1]:1"`)), six, nil,
			"inbound|9|| STATIC ::1:1 from= max=-1 shop/all.shop\ninbound|10|| STATIC ::1:1 from= max=-1 shop/all.shop\n"},
		{"socket", list(port(9, `, defaultEndpoint: "unix:///var/app"`)), four, nil,
			"inbound|9|| STATIC /var/app:0 from=127.0.0.6 max=-1 shop/all.shop\n"},
		{"none", list(port(9, ``)), four, nil, "inbound|9|| ORIGINAL_DST - from=127.0.0.6 max=-1 shop/all.shop\n"},
		{"limits", `{inboundConnectionPool: {tcp: {maxConnections: 3}}, ingress: [` + port(8080, ``) + `, ` + port(9,
			`, connectionPool: {tcp: {maxConnections: 4}}`) + `]}`, four, nil,
			"inbound|8080|| ORIGINAL_DST - from=127.0.0.6 max=3 shop/web.shop.svc.cluster.local\ninbound|9|| ORIGINAL_DST - from=127.0.0.6 max=4 shop/all.shop\n"},
		{"no ingress", `{}`, four, nil,
			"inbound|8080|| ORIGINAL_DST - from=127.0.0.6 max=7 shop/web.shop.svc.cluster.local\n"},
	} {
		t.Run(r.name, func(t *testing.T) {
			if got := ingressClusters(t, r.spec, r.traits, r.addresses...); got != r.want {
				t.Errorf("got\n%swant\n%s", got, r.want)
			}
		})
	}
}
