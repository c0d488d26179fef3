package status

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"unique"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

type nobody struct{}

func (nobody) Publish(*snapshot.View, *snapshot.Delta) {}

// everything returns a View with a service of every resolution, registry and protocol, each with an endpoint of every
// health, one that nobody is known of, and one past the last health.
func everything() (*snapshot.View, int) {
	protocols := []value.Protocol{"", value.HTTP, value.HTTP2, value.GRPC, value.GRPCWeb, value.HTTPS, value.TCP,
		value.TLS, value.UDP, value.Mongo, value.Redis, value.MySQL, "none\x00 that is <known>"}
	batch := &snapshottest.Batch{Mesh: &value.Mesh{}, Services: map[value.ServiceKey]*value.Service{},
		Endpoints: map[value.ServiceKey][]*value.Endpoint{}}
	for resolution := value.ClientSideLB; resolution <= value.Alias+1; resolution++ {
		for _, registry := range []value.Registry{value.RegistryKubernetes, value.RegistryExternal, 9} {
			key := value.ServiceKey{Host: fmt.Sprintf("s%d-%d.com", resolution, registry), Namespace: "shop"}
			svc := &value.Service{ServiceKey: key, Resolution: resolution, Registry: registry}
			e := func(h value.Health) *value.Endpoint {
				return &value.Endpoint{Addresses: []string{"10.0.0.1"}, Health: h,
					Identity: unique.Make(value.Identity{Workload: "w"})}
			}
			ends := []*value.Endpoint{{}}
			for h := value.Health(0); h <= value.Healths; h++ {
				ends = append(ends, e(h))
			}
			for i, p := range protocols {
				name := fmt.Sprint("p", i)
				svc.Ports = append(svc.Ports, &value.Port{Name: name, Number: i, Protocol: p})
				for _, e := range ends {
					e.Ports = append(e.Ports, value.EndpointPort{Name: name, Port: uint32(i)})
				}
			}
			batch.Services[key], batch.Endpoints[key] = svc, ends
		}
	}
	none := value.ServiceKey{Host: "*.none.com", Namespace: "shop"}
	batch.Services[none] = &value.Service{ServiceKey: none}
	b := snapshot.NewBuilder(nobody{})
	snapshottest.Apply(b, batch)
	return b.View(), len(batch.Services)
}

func TestRegistryPagesShowEveryKindOfValue(t *testing.T) {
	v, services := everything()
	view := func() *snapshot.View { return v }
	for query, want := range map[string]int{"": 1, "?host=s0-0.com": 1, "?host=S0-0.COM": 1, "?host=nobody": 0,
		"?host=%00%ff": 0, "?host=" + strings.Repeat("a", 10000): 0, "?%zz": 1} {
		content, err := Endpoints(view)(httptest.NewRequest("GET", "/debug/endpointz"+query, nil))
		b, bad := json.Marshal(content)
		if err != nil || bad != nil || (len(content.([]endpointPort)) > 0) != (want > 0) {
			t.Errorf("%.50s: %d entries, errors %v, %v", query, len(content.([]endpointPort)), err, bad)
		}
		for h := value.Health(0); h < value.Healths && want > 0; h++ {
			if !strings.Contains(string(b), `"healthStatus":"`+h.String()+`"`) {
				t.Errorf("%s: no endpoint is %v", query, h)
			}
		}
	}
	content, err := Registry(view)(httptest.NewRequest("GET", "/debug/registryz", nil))
	if _, bad := json.Marshal(content); err != nil || bad != nil || len(content.([]registryService)) != services {
		t.Errorf("registryz: %d services, want %d; errors %v, %v", len(content.([]registryService)), services, err, bad)
	}
}

// Before the first View there is an empty one.
func TestRegistryPagesBeforeTheFirstView(t *testing.T) {
	view := snapshot.NewBuilder(nobody{}).View
	for name, page := range map[string]Page{"registryz": Registry(view), "endpointz": Endpoints(view)} {
		if content, err := page(httptest.NewRequest("GET", "/debug/"+name, nil)); err != nil || content == nil {
			t.Errorf("%s: %v, %v", name, content, err)
		}
	}
}
