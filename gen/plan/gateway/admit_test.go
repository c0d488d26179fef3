package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestServersAtOnePort: which servers stand beside those before them at one port.
func TestServersAtOnePort(t *testing.T) {
	for servers, want := range map[string]string{ // protocol and host of each
		"HTTP/a GRPC/b TCP/c HTTPS/d":          "[HTTP GRPC]",
		"TCP/a TCP/b HTTP/c":                   "[TCP]",
		"HTTPS/a HTTPS/a HTTPS/b":              "[HTTPS HTTPS]",
		"HTTPS/a HTTP/b HTTP2/c HTTPS/d":       "[HTTPS HTTP HTTPS]",
		"HTTPS/a HTTPS/b HTTP/c":               "[HTTPS HTTPS]",
		"REDIRECT/a HTTP/a REDIRECT/a HTTPS/a": "[HTTP HTTP]",
	} {
		m := newMachine()
		gw := &value.Gateway{Meta: value.Meta{Namespace: "gw", Name: "one"}}
		gw.Workload = value.Labels{"app": "edge"}
		for i, text := range strings.Fields(servers) {
			protocol, host, _ := strings.Cut(text, "/")
			s := &value.Server{Hosts: []value.ServerHost{{Namespace: "*", Host: host}},
				Port: value.ListenerPort{Number: 7000, Name: fmt.Sprint("s", i), Protocol: value.Protocol(protocol)}}
			switch protocol {
			case "REDIRECT":
				s.Port.Protocol, s.Redirect, s.TLS = value.HTTP, true, &value.ServerTLS{Mode: value.PassthroughTLS}
			case "HTTPS":
				s.TLS = &value.ServerTLS{Mode: value.SimpleTLS, Credentials: []string{"cert"}}
			}
			gw.Servers = append(gw.Servers, s)
		}
		snapshottest.Apply(m.builder, &snapshottest.Batch{Gateways: map[value.ObjectKey]*value.Gateway{gw.Object(): gw}})
		c := m.join(scope.Facts{Namespace: "gw", Traits: value.Traits{Type: value.Router, IPv4: true}})
		var got []string
		for _, p := range c.router.ports.All() {
			for _, s := range p.admitted.All() {
				got = append(got, string(s.Port.Protocol))
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", servers, got, want)
		}
	}
}
