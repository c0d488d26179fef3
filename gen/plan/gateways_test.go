package plan

import (
	"fmt"
	"slices"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestServersAtOnePort: which servers stand beside those before them.
func TestServersAtOnePort(t *testing.T) {
	mesh := "service edge.gw.svc.cluster.local gw port=80/HTTP,443/HTTPS\n"
	for servers, want := range map[string]string{
		"7000/HTTP/*/a;7000/GRPC/*/b;7000/TCP/*/c;7000/HTTPS/*/d":          "[HTTP GRPC]",
		"7000/TCP/*/a;7000/TCP/*/b;7000/HTTP/*/c":                          "[TCP]",
		"7000/HTTPS/*/a;7000/HTTPS/*/a;7000/HTTPS/*/b":                     "[HTTPS HTTPS]",
		"7000/HTTPS/*/a;7000/HTTP/*/b;7000/HTTP2/*/c;7000/HTTPS/*/d":       "[HTTPS HTTP HTTPS]",
		"7000/HTTPS/*/a;7000/HTTPS/*/b;7000/HTTP/*/c":                      "[HTTPS HTTPS]",
		"7000/REDIRECT/*/a;7000/HTTP/*/a;7000/REDIRECT/*/a;7000/HTTPS/*/a": "[HTTP HTTP]",
	} {
		n := meshOf(t, mesh+"gateway gw/one app=edge server="+servers)
		b := NewTables().newBase(n, Facts{Namespace: "gw", Traits: value.Traits{Type: value.Router, IPv4: true}}, value.Labels{"app": "edge"})
		var got []string
		for _, p := range b.router.ports.All() {
			for _, s := range p.admitted.All() {
				got = append(got, string(s.protocol))
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", servers, got, want)
		}
	}
}

// TestNamedGatewayPort: a Service's named target port is the one of the router's own pod, and is a fact of its class.
func TestNamedGatewayPort(t *testing.T) {
	svc := &value.Service{
		ServiceKey: value.ServiceKey{Host: "edge.gw.svc.cluster.local", Namespace: "gw"}, Name: "edge", Selector: value.Labels{"app": "edge"},
		Export: value.Visibility{Public: true}, Ports: []*value.Port{{Name: "http", Number: 80, Protocol: value.HTTP, TargetName: "web"}},
	}
	gw := &value.Gateway{Meta: value.Meta{Namespace: "gw", Name: "one"}, Spec: &networking.Gateway{
		Servers: []*networking.Server{{Port: &networking.Port{Number: 80, Name: "http", Protocol: "HTTP"}, Hosts: []string{"*/*"}}},
	}}
	b := &snapshot.Batch{
		Mesh: meshOf(t, "service x.a.svc.cluster.local a").Mesh, Services: map[value.ServiceKey]*value.Service{svc.ServiceKey: svc},
		Gateways: map[value.ObjectKey]*value.Gateway{{Kind: value.KindGateway, Namespace: "gw", Name: "one"}: gw},
	}
	builder := snapshot.NewBuilder(nil)
	builder.Apply(b)
	n := builder.View().Snapshot
	labels := value.Labels{"app": "edge"}
	for named, want := range map[string]int{"web": 8080, "other": 80} {
		w := &value.Workload{Namespace: "gw", Pod: true, Labels: labels, NamedPorts: map[string]int{named: 8080, "unread": 9}}
		f := Facts{Namespace: "gw", NamedPorts: namedPorts(n, w), Traits: value.Traits{Type: value.Router, IPv4: true}}
		var got []int
		for _, p := range NewTables().newBase(n, f, labels).router.ports.All() {
			got = append(got, p.mode().first.port)
		}
		if !slices.Equal(got, []int{want}) {
			t.Errorf("named %s: %v, want %d", named, got, want)
		}
	}
}
