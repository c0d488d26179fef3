package gen_test

import (
	"strings"
	"testing"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestBadEndpointsAreLeftOutAlone: an endpoint that Envoy would refuse a whole assignment for is not in it; others are.
func TestBadEndpointsAreLeftOutAlone(t *testing.T) {
	f := gen.EndpointFilter{Port: "http"}
	for address, want := range map[string]bool{
		"10.0.0.1": true, "fd00::1": true, "unix:///run/app.sock": true, "fe80::1%eth0": false, "10.0.0.256": false,
		"1:2":     false,
		"unix://": false, "unix:///" + strings.Repeat("p", 106): true, "unix:///" + strings.Repeat("p", 107): false,
	} {
		for port, fits := range map[uint32]bool{80: true, 65535: true, 65536: false} {
			e := &value.Endpoint{Addresses: []string{address}, Ports: []value.EndpointPort{{Name: "http", Port: port}}}
			if _, ok := f.Select(e); ok != (want && fits) {
				t.Errorf("%s, port %d: there %v, want %v", address, port, ok, want && fits)
			}
		}
	}
}
