package outbound

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// DynamicDNS says how the proxies of a scope resolve the hosts of requests to unknown services. They do under the
// mesh's outbound traffic policy ALLOW_ANY_DYNAMIC_DNS, if no Sidecar object has a policy of its own, and if they were
// built with what it takes; others serve it as ALLOW_ANY.
func DynamicDNS(n *snapshot.Snapshot, sc *scope.Scope) gen.DynamicDNS {
	t := sc.Traits
	if !wantsDynamicDNS(n, &sc.Facts) || !t.Filters.Has(value.DynamicForwardProxy) {
		return gen.DynamicDNS{}
	}
	return gen.DynamicDNS{Served: true, IPv6Only: t.IPv6 && !t.IPv4, Captured: t.DNSCapture}
}

// wantsDynamicDNS reports whether proxies with these Facts are under that policy, whatever they were built with.
func wantsDynamicDNS(n *snapshot.Snapshot, f *scope.Facts) bool {
	return n.Mesh.Outbound.Mode == value.AllowAnyDynamicDNS &&
		f.Traits.Type == value.SidecarProxy && (f.Sidecar == nil || f.Sidecar.Outbound == nil)
}

// LacksDynamicDNS reports whether such proxies were built without what it takes.
func LacksDynamicDNS(n *snapshot.Snapshot, f *scope.Facts) bool {
	return wantsDynamicDNS(n, f) && !f.Traits.Filters.Has(value.DynamicForwardProxy)
}

// withoutDynamicDNS is the unit under which it stands that some proxies lack it.
type withoutDynamicDNS struct{}

// noteLack says of the mesh's configuration that there are proxies for which the policy is not served.
func noteLack(f *checked.Faults, mesh value.ObjectKey) {
	f.NotServed(withoutDynamicDNS{}, mesh, "outboundTrafficPolicy.mode",
		"ALLOW_ANY_DYNAMIC_DNS is served as ALLOW_ANY to connected proxies that do not list Envoy's dynamic forward "+
			"proxy among their extensions")
}

// Served takes back what noteLack says.
func Served(f *checked.Faults) { f.Served(withoutDynamicDNS{}) }

// virtualHTTP returns what becomes of HTTP requests that no listener of the scope takes; zero where they pass through
// as bytes.
func (v View) virtualHTTP() gen.VirtualHTTPKey {
	d := DynamicDNS(v.n, v.sc)
	if !d.Served {
		return gen.VirtualHTTPKey{}
	}
	return gen.VirtualHTTPKey{
		Mesh: v.n.Mesh.HTTP, Detection: v.n.Mesh.Detection, CountAttempts: v.n.Mesh.Routes.CountAttempts,
		Filters: v.sc.Traits.Filters, HTTP10: v.sc.Traits.HTTP10, DynamicDNS: d, Bytes: v.bytePorts(),
	}
}

// bytePorts returns the ports at which a service of the scope may have a server that speaks first.
func (v View) bytePorts() string {
	ports := map[int]struct{}{}
	for svc := range v.sc.Services(v.n) {
		for _, p := range svc.Ports {
			if SpeaksFirst(p) {
				ports[p.Number] = struct{}{}
			}
		}
	}
	var out []string
	for _, port := range slices.Sorted(maps.Keys(ports)) {
		out = append(out, strconv.Itoa(port))
	}
	return strings.Join(out, " ")
}

// SpeaksFirst reports whether the servers of a port may speak before their clients do.
func SpeaksFirst(p *value.Port) bool { return p.Protocol.IsTCP() && !p.Protocol.IsTLS() }
