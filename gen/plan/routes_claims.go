package plan

import (
	"slices"
	"strings"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// portView answers who has which virtual host in the route configuration of one port, for the proxies of one scope.
type portView struct {
	n    *snapshot.Snapshot
	sc   *Scope
	port int
	// known is what was found out for other scopes; may be nil.
	known *known
}

// claim is what stands behind a virtual host: a service, a VirtualService, or both.
type claim struct {
	host    string
	service *value.Service
	rule    *value.VirtualService
	refused gen.Verdicts
}

// routable reports whether requests of a protocol are routed, possibly after sniffing.
func routable(p value.Protocol) bool { return p.IsHTTP() || p == value.Auto }

// service is the service of host that the scope imports, if it has the port. One that is only known as a destination is
// none.
func (v portView) service(host string) *value.Service {
	svc := v.meant(host)
	if svc == nil || svc.PortByNumber(v.port) == nil || !v.sc.imported(svc.Namespace, host) {
		return nil
	}
	return svc
}

// claim is who has the virtual host of a host; not ok if nobody.
func (v portView) claim(host string) (c claim, ok bool) {
	svc := v.service(host)
	if svc == nil {
		return v.claimByRule(host)
	}
	if !routable(svc.PortByNumber(v.port).Protocol) {
		return claim{}, false
	}
	if rule, refused := v.governing(host); rule != nil {
		return claim{host, svc, rule, refused}, true
	}
	return claim{host: host, service: svc}, svc.Resolution != value.Alias
}

// claimByRule is who has a host without a service: the first VirtualService that names it and has routes. On another
// port than 80 only one that also names a service of that port. A pattern that covers services stands for them and is
// no host of its own.
func (v portView) claimByRule(host string) (c claim, ok bool) {
	for _, vs := range v.rules(host) {
		refused, routed := v.verdicts(vs)
		if !routed || v.port != anyHostPort && !v.reachesService(vs) {
			continue
		}
		if strings.HasPrefix(host, "*") && v.covers(host, nil) {
			return claim{}, false
		}
		return claim{host, nil, vs, refused}, true
	}
	return claim{}, false
}

// reachesService reports whether a VirtualService governs a service of the port.
func (v portView) reachesService(vs *value.VirtualService) bool {
	return slices.ContainsFunc(vs.Hosts, func(h string) bool {
		if strings.HasPrefix(h, "*") {
			return v.covers(h, vs)
		}
		svc := v.service(h)
		return svc != nil && routable(svc.PortByNumber(v.port).Protocol)
	})
}

// covers reports whether a service of the port falls under a pattern; with a VirtualService, whether one does that it
// governs.
func (v portView) covers(pattern string, by *value.VirtualService) bool {
	for svc := range v.n.ServicesUnder(pattern) {
		seen := v.service(svc.Host)
		if seen == nil {
			continue
		}
		if by == nil || routable(seen.PortByNumber(v.port).Protocol) && slices.Contains(v.first(svc.Host), by) {
			return true
		}
	}
	return false
}

// governing is the VirtualService in force for the service of a host, and its verdicts; nil if there is none.
func (v portView) governing(host string) (*value.VirtualService, gen.Verdicts) {
	for _, vs := range v.first(host) {
		if refused, routed := v.verdicts(vs); routed {
			return vs, refused
		}
	}
	return nil, ""
}

// first are the VirtualServices that may govern a host: those that name it, in order; if none does, the first of those
// with the most specific pattern.
func (v portView) first(host string) []*value.VirtualService {
	for _, at := range v.known.host(v.n, host).named {
		rules := v.visible(at.rules)
		switch {
		case len(rules) == 0:
		case strings.HasPrefix(at.pattern, "*"):
			return rules[:1]
		default:
			return rules
		}
	}
	return nil
}

// rules are the VirtualServices of the mesh that the scope sees and that name exactly this host or pattern, in order of
// precedence.
func (v portView) rules(host string) []*value.VirtualService {
	if named := v.known.host(v.n, host).named; len(named) > 0 && named[0].pattern == host {
		return v.visible(named[0].rules)
	}
	return nil
}

// visible are those VirtualServices of the mesh that the scope sees, in order of precedence: those that only the
// client's namespace may see first, then those exported to it by name, then public ones; in each, the oldest first.
func (v portView) visible(all []*value.VirtualService) []*value.VirtualService {
	var out []*value.VirtualService
	for _, vs := range all {
		if v.sc.SeesVirtualService(vs) {
			out = append(out, vs)
		}
	}
	if len(out) > 1 {
		slices.SortStableFunc(out, func(a, b *value.VirtualService) int { return v.sc.reach(a) - v.sc.reach(b) })
	}
	return out
}

// meshGateway is the name under which VirtualServices bind to all sidecars.
const meshGateway = "mesh"

// reach is the rank of a VirtualService by how far it is exported.
func (sc *Scope) reach(vs *value.VirtualService) int {
	switch {
	case vs.Export.Public:
		return 2
	case sc.in(vs.Namespace):
		return 0
	}
	return 1
}

// verdicts are the verdicts of a VirtualService's matches for the scope's proxies; routed, if any route is left on the
// port.
func (v portView) verdicts(vs *value.VirtualService) (refused gen.Verdicts, routed bool) {
	return v.sc.verdicts(vs, v.port, meshGateway)
}

// verdicts are those for requests at a gateway.
func (sc *Scope) verdicts(vs *value.VirtualService, port int, gateway string) (refused gen.Verdicts, routed bool) {
	var out []byte
	apart := false
	for _, h := range vs.HTTP {
		routed = routed || h.Leads() && len(h.Matches) == 0
		for _, m := range h.Matches {
			from := len(m.Gateways) > 0 && slices.Contains(m.Gateways, gateway) ||
				len(m.Gateways) == 0 && sc.Labels.Contains(m.Labels) &&
					(m.Namespace == "" || sc.in(m.Namespace))
			verdict := byte('0')
			if !from {
				verdict, apart = '1', true
			}
			out = append(out, verdict)
			routed = routed || h.Leads() && from && (m.Port == 0 || m.Port == port)
		}
	}
	if !apart {
		return "", routed
	}
	return gen.Verdicts(out), routed
}

// before reports whether a has what both claim: VirtualServices before plain services, by precedence; in one
// VirtualService hosts without a service first, in its order; plain services by age.
func (a claim) before(b claim, sc *Scope) bool {
	switch {
	case (a.rule == nil) != (b.rule == nil):
		return a.rule != nil
	case a.rule == nil:
		return value.OlderService(a.service, b.service) < 0
	case a.rule != b.rule:
		if ra, rb := sc.reach(a.rule), sc.reach(b.rule); ra != rb {
			return ra < rb
		}
		return a.rule.Older(b.rule.Meta)
	case (a.service == nil) != (b.service == nil):
		return a.service == nil
	}
	hosts := a.rule.Hosts
	if ia, ib := slices.Index(hosts, a.host), slices.Index(hosts, b.host); ia != ib {
		return ib < 0 || ia >= 0 && ia < ib
	}
	return a.host < b.host
}
