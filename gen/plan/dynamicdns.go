package plan

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// dynamicDNS says how the proxies of a scope resolve the hosts of requests to unknown services. They do under the
// mesh's outbound traffic policy ALLOW_ANY_DYNAMIC_DNS, if no Sidecar object has a policy of its own, and if they were
// built with what it takes; others serve it as ALLOW_ANY.
func dynamicDNS(n *snapshot.Snapshot, sc *scope.Scope) gen.DynamicDNS {
	t := sc.Traits
	if !wantsDynamicDNS(n, &sc.Facts) || !t.Filters.Has(value.DynamicForwardProxy) {
		return gen.DynamicDNS{}
	}
	return gen.DynamicDNS{Served: true, IPv6Only: t.IPv6 && !t.IPv4, Captured: t.DNSCapture}
}

// wantsDynamicDNS reports whether proxies with these Facts are under that policy, whatever they were built with.
func wantsDynamicDNS(n *snapshot.Snapshot, f *scope.Facts) bool {
	return n.Mesh.Config.GetOutboundTrafficPolicy().GetMode() == meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY_DYNAMIC_DNS &&
		f.Traits.Type == value.SidecarProxy && (f.Sidecar == nil || f.Sidecar.Spec.GetOutboundTrafficPolicy() == nil)
}

// lacksDynamicDNS reports whether such proxies were built without what it takes.
func lacksDynamicDNS(n *snapshot.Snapshot, f *scope.Facts) bool {
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

// forgetLack takes that back once a base is gone that was the last one of such proxies.
func (p *Planner) forgetLack(gone *scope.Facts) {
	n := p.current.Snapshot
	if !lacksDynamicDNS(n, gone) {
		return
	}
	for f := range p.bases {
		if lacksDynamicDNS(n, &f) {
			return
		}
	}
	p.tables.faults.Served(withoutDynamicDNS{})
}

// virtualHTTP is what becomes of HTTP requests that no listener of the scope takes; zero where they pass through as
// bytes.
func (v outboundView) virtualHTTP() gen.VirtualHTTPKey {
	d := dynamicDNS(v.n, v.sc)
	if !d.Served {
		return gen.VirtualHTTPKey{}
	}
	return gen.VirtualHTTPKey{
		Mesh: v.n.Mesh, Filters: v.sc.Traits.Filters, HTTP10: v.sc.Traits.HTTP10, DynamicDNS: d, Bytes: v.bytePorts(),
	}
}

// bytePorts are the ports at which a service of the scope may have a server that speaks first.
func (v outboundView) bytePorts() string {
	ports := map[int]struct{}{}
	for svc := range v.sc.Services(v.n) {
		for _, p := range svc.Ports {
			if speaksFirst(p) {
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

// speaksFirst reports whether the servers of a port may speak before their clients do.
func speaksFirst(p *value.Port) bool { return p.Protocol.IsTCP() && !p.Protocol.IsTLS() }

// moveDynamic replaces virtualOutbound where it depends on services, and a touched one may change it.
func (t *Tables) moveDynamic(m *move) {
	if m.touch.Virtual {
		t.moveVirtual(m)
		return
	}
	if m.touch.All || !dynamicDNS(m.n, m.to).Served {
		return
	}
	bytes := func(sc *scope.Scope, n *snapshot.Snapshot, host string) bool {
		svc := sc.Service(n, host)
		return svc != nil && slices.ContainsFunc(svc.Ports, speaksFirst)
	}
	for host := range m.touch.EachHost(m.from.snap, m.n) {
		if bytes(m.from.scope, m.from.snap, host) || bytes(m.to.Unwatched(), m.n, host) {
			t.moveVirtual(m)
			return
		}
	}
}
