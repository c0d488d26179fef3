package workload

import (
	"maps"
	"testing"

	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestEntryServesServicePorts: a proxy whose workload is a WorkloadEntry has the inbound ports of the Kubernetes
// Services that select the entry, each at the number that the entry gives: under the name of a named target port, else
// under the service port's own name, else the target's.
func TestEntryServesServicePorts(t *testing.T) {
	service := func(name string, headless bool, ports ...*value.Port) *value.Service {
		k := value.ServiceKey{Host: name + ".shop.svc.cluster.local", Namespace: "shop"}
		return &value.Service{ServiceKey: k, Name: name, Selector: value.Labels{"app": "vm"}, Headless: headless,
			Ports: ports, Export: value.Visibility{Public: true}}
	}
	b := &snapshottest.Batch{Mesh: istio.Mesh(&meshconfig.MeshConfig{}, "", ""),
		Services: map[value.ServiceKey]*value.Service{},
		Workloads: map[string]*value.Workload{
			"10.0.0.9": {Namespace: "shop", Name: "vm", Labels: value.Labels{"app": "vm"},
				Ports: map[string]uint32{"http": 7000, "main": 7001}},
		}}
	for _, s := range []*value.Service{
		service("vm", false,
			&value.Port{Name: "http", Number: 80, TargetPort: 8080, Protocol: value.HTTP},
			&value.Port{Name: "tcp", Number: 81, TargetPort: 8081, Protocol: value.TCP},
			&value.Port{Name: "plain", Number: 82, Protocol: value.TCP},
			&value.Port{Name: "by-name", Number: 83, TargetName: "main", Protocol: value.TCP},
			&value.Port{Name: "nowhere", Number: 84, TargetName: "other", Protocol: value.TCP}),
		service("members", true, &value.Port{Name: "http", Number: 90, TargetPort: 90, Protocol: value.TCP}),
		{ServiceKey: value.ServiceKey{Host: "else.shop.svc.cluster.local", Namespace: "shop"},
			Selector: value.Labels{"app": "else"}, Ports: []*value.Port{{Name: "http", Number: 99}}},
	} {
		b.Services[s.ServiceKey] = s
	}
	builder := snapshot.NewBuilder(nil)
	snapshottest.Apply(builder, b)
	client := &proxy.Proxy{Namespace: "shop", Addresses: []string{"10.0.0.9"}}
	got := map[int]int{}
	for _, target := range Of(builder.View(), client).Targets() {
		got[target.Port.Number] = target.Number
	}
	if want := map[int]int{80: 7000, 81: 8081, 82: 82, 83: 7001}; !maps.Equal(got, want) {
		t.Errorf("service port to own port: got %v, want %v", got, want)
	}
}
