package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// routerPorts returns the numbers at which a router of namespace gw listens for a Gateway of port 80, and its Facts.
// Its services and what is at its address 10.0.0.1 are those of b.
func routerPorts(t *testing.T, b *snapshottest.Batch) (got []int, f scope.Facts) {
	b.Mesh = meshOf(t, "service x.a.svc.cluster.local a").Mesh
	b.Gateways = map[value.ObjectKey]*value.Gateway{{Kind: value.KindGateway, Namespace: "gw", Name: "one"}: {
		Meta: value.Meta{Namespace: "gw", Name: "one"}, GatewaySettings: value.GatewaySettings{
			Workload: value.Labels{"app": "edge"},
			Servers: []*value.Server{{Port: value.ListenerPort{Number: 80, Name: "http", Protocol: value.HTTP},
				Hosts: []value.ServerHost{{Namespace: "*", Host: "*"}}}},
		}}}
	builder := snapshot.NewBuilder(nil)
	snapshottest.Apply(builder, b)
	v := builder.View()
	p := &proxy.Proxy{Namespace: "gw", Addresses: []string{"10.0.0.1"}, Labels: proxy.PackLabels(value.Labels{"app": "edge"}),
		Traits: value.Traits{Type: value.Router, IPv4: true}}
	f, labels := factsOf(v, p)
	for name := range NewTables().newBase(v.Snapshot, f, labels).listeners.All() {
		number, err := strconv.Atoi(name[strings.LastIndexByte(name, '_')+1:])
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, number)
	}
	return got, f
}

// ownService returns a service that a router serves at its port 80.
func ownService(name string, created int64, registry value.Registry, port value.Port) *value.Service {
	svc := &value.Service{
		ServiceKey: value.ServiceKey{Host: name, Namespace: "gw"}, Name: name, Created: created, Registry: registry,
		Export: value.Visibility{Public: true},
	}
	if registry == value.RegistryKubernetes {
		svc.Selector = value.Labels{"app": "edge"}
	}
	port.Name, port.Number, port.Protocol = "http", 80, value.HTTP
	svc.Ports = []*value.Port{&port}
	return svc
}

// TestNamedGatewayPort: a Service's named target port is the one of the router's own pod, and is a fact of its class.
func TestNamedGatewayPort(t *testing.T) {
	svc := ownService("edge.gw.svc.cluster.local", 0, value.RegistryKubernetes, value.Port{TargetName: "web"})
	for named, want := range map[string]int{"web": 8080, "other": 80} {
		w := &value.Workload{Namespace: "gw", Pod: true, Labels: value.Labels{"app": "edge"},
			NamedPorts: map[string]int{named: 8080, "unread": 9}}
		got, _ := routerPorts(t, &snapshottest.Batch{
			Services:  map[value.ServiceKey]*value.Service{svc.ServiceKey: svc},
			Workloads: map[string]*value.Workload{"10.0.0.1": w},
		})
		if !slices.Equal(got, []int{want}) {
			t.Errorf("named %s: %v, want %d", named, got, want)
		}
	}
}

// TestGatewayPortOfServiceEntry: a ServiceEntry with an endpoint at the router's address translates the ports of
// Gateways, as a Service does; of both the older decides.
func TestGatewayPortOfServiceEntry(t *testing.T) {
	entry := ownService("edge.example.com", 1, value.RegistryExternal, value.Port{TargetPort: 9999})
	at := []*value.Endpoint{{Addresses: []string{"10.0.0.1"}, Weight: 1, Labels: value.Labels{"app": "edge"},
		Ports: []value.EndpointPort{{Name: "http", Port: 7000}}}}
	for name, c := range map[string]struct {
		more *value.Service
		want int
	}{
		"alone": {nil, 7000},
		"older service": {ownService("edge.gw.svc.cluster.local", 0, value.RegistryKubernetes,
			value.Port{TargetPort: 8080}), 8080},
		"younger service": {ownService("edge.gw.svc.cluster.local", 2, value.RegistryKubernetes,
			value.Port{TargetPort: 8080}), 7000},
		"elsewhere, older": {ownService("other.example.com", 0, value.RegistryExternal, value.Port{TargetPort: 8081}),
			7000},
	} {
		b := &snapshottest.Batch{
			Services:  map[value.ServiceKey]*value.Service{entry.ServiceKey: entry},
			Endpoints: map[value.ServiceKey][]*value.Endpoint{entry.ServiceKey: at},
			Workloads: map[string]*value.Workload{"10.0.0.1": {Namespace: "gw", Pod: true,
				Labels: value.Labels{"app": "edge"}}},
		}
		if c.more != nil {
			b.Services[c.more.ServiceKey] = c.more
		}
		if got, _ := routerPorts(t, b); !slices.Equal(got, []int{c.want}) {
			t.Errorf("%s: %v, want %d", name, got, c.want)
		}
	}
	entry.Labels = value.Labels{"experimental.istio.io/disable-gateway-port-translation": ""}
	got, _ := routerPorts(t, &snapshottest.Batch{
		Services:  map[value.ServiceKey]*value.Service{entry.ServiceKey: entry},
		Endpoints: map[value.ServiceKey][]*value.Endpoint{entry.ServiceKey: at},
	})
	if !slices.Equal(got, []int{80}) {
		t.Errorf("translation switched off: %v, want 80", got)
	}
}

// TestGatewayOfEndpointWithoutLabels: the labels of a ServiceEntry's endpoint at a router's address decide which
// Gateways apply, unless a workload is registered there. Where the endpoint has none, those that the router says it has
// do.
func TestGatewayOfEndpointWithoutLabels(t *testing.T) {
	entry := ownService("edge.example.com", 0, value.RegistryExternal, value.Port{})
	for name, c := range map[string]struct {
		labels   value.Labels
		address  string
		workload *value.Workload
		applies  bool
	}{
		"labels":       {value.Labels{"app": "edge"}, "10.0.0.1", nil, true},
		"other labels": {value.Labels{"app": "other"}, "10.0.0.1", nil, false},
		"no labels":    {nil, "10.0.0.1", nil, true},
		"those that all endpoints get": {value.Labels{"topology.istio.io/cluster": "Kubernetes",
			"topology.kubernetes.io/region": "r"}, "10.0.0.1", nil, true},
		"others beside those": {value.Labels{"topology.istio.io/cluster": "Kubernetes", "app": "other"}, "10.0.0.1", nil,
			false},
		"elsewhere": {nil, "10.0.0.2", nil, true},
		"a pod is there": {nil, "10.0.0.1", &value.Workload{Namespace: "gw", Pod: true,
			Labels: value.Labels{"app": "edge"}}, true},
	} {
		b := &snapshottest.Batch{
			Services: map[value.ServiceKey]*value.Service{entry.ServiceKey: entry},
			Endpoints: map[value.ServiceKey][]*value.Endpoint{entry.ServiceKey: {
				{Addresses: []string{c.address}, Labels: c.labels,
					Ports: []value.EndpointPort{{Name: "http", Port: 80}}}}},
		}
		if c.workload != nil {
			b.Workloads = map[string]*value.Workload{c.address: c.workload}
		}
		if got, f := routerPorts(t, b); (len(got) > 0) != c.applies {
			t.Errorf("%s: ports %v, labels %q", name, got, f.Labels)
		}
	}
}

// TestGatewaysThatShareAChain: all Gateways whose servers of plain HTTP share a filter chain are what it comes from, so
// that whichever is to blame for a refusal is told.
func TestGatewaysThatShareAChain(t *testing.T) {
	mesh := `
service edge.gw.svc.cluster.local gw port=80/HTTP,443/HTTPS
gateway gw/one app=edge server=7000/HTTP/*/a
gateway gw/two app=edge server=7000/HTTP/*/b
gateway gw/other app=edge server=7001/HTTP/*/a
`
	b := NewTables().newBase(meshOf(t, mesh),
		scope.Facts{Namespace: "gw", Traits: value.Traits{Type: value.Router, IPv4: true}},
		value.Labels{"app": "edge"})
	got := map[string][]string{}
	for name, e := range b.listeners.All() {
		for f := range e.Parts() {
			for _, o := range checked.ObjectsOf(f) {
				if o.Kind == value.KindGateway {
					got[name] = append(got[name], o.Name)
				}
			}
		}
	}
	if want := "map[0.0.0.0_7000:[one two] 0.0.0.0_7001:[other]]"; fmt.Sprint(got) != want {
		t.Errorf("the Gateways of the listeners are %v, want %s", got, want)
	}
}
