package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestSniffedRouteNames: a port of which nobody says what it speaks has routes under the name that its listener asks
// for: of its own at an address of its own and at the loopback address, those of the port at the wildcard address.
func TestSniffedRouteNames(t *testing.T) {
	n := meshOf(t, `service own.a.svc.cluster.local a port=7001/UnsupportedProtocol ip=10.0.0.1
service wild.example a port=7002/UnsupportedProtocol external
service range.example a port=7003/UnsupportedProtocol external ip=192.0.2.0/24
service both.example a port=7004/UnsupportedProtocol external ip=192.0.2.0/24,192.0.2.1
service heads.a.svc.cluster.local a port=7005/UnsupportedProtocol headless`)
	for svc := range n.Services() {
		svc.Ports[0].Protocol = value.Auto
	}
	for mode, want := range map[value.Interception]string{
		value.Redirect: "7002 7003 7004 both.example:7004 heads.a.svc.cluster.local:7005 own.a.svc.cluster.local:7001",
		value.NoInterception: "7002 7003 7004 both.example:7004 heads.a.svc.cluster.local:7005 own.a.svc.cluster.local:7001 " +
			"range.example:7003 wild.example:7002",
	} {
		b := NewTables().newBase(n, scope.Facts{Namespace: "a", Traits: value.Traits{IPv4: true, Interception: mode}}, nil)
		var got []string
		for name := range b.routes.All() {
			got = append(got, name)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("mode %v: %v, want %s", mode, got, want)
		}
	}
}
