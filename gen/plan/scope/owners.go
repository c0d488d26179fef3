package scope

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// PortView answers who has which virtual host in the route configuration of one port, for the proxies of one Scope.
type PortView struct {
	Snapshot *snapshot.Snapshot
	Scope    *Scope
	Port     int
	// Memo has what was found out for other Scopes at the same Snapshot; it may be nil.
	Memo *Memo
}

// OnPort answers for the scope's proxies and one port. memo is what was found out for other scopes; it may be nil.
func (sc *Scope) OnPort(n *snapshot.Snapshot, port int, memo *Memo) PortView {
	return PortView{n, sc, port, memo}
}

// Owner is what stands behind a virtual host: a service, a VirtualService, or both.
type Owner struct {
	Host string
	// Service is nil where a VirtualService names a host that no service has; VirtualService is nil where none governs
	// the host.
	Service        *value.Service
	VirtualService *value.VirtualService
	// Refused are the matches of the VirtualService that do not hold for the Scope's proxies.
	Refused gen.Verdicts
}

// Routable reports whether requests of a protocol are routed, possibly after sniffing.
func Routable(p value.Protocol) bool { return p.IsHTTP() || p == value.Auto }

// Service returns the service of host that the scope imports, if it has the port. One that is only known as a
// destination is none.
func (v PortView) Service(host string) *value.Service {
	svc := v.Meant(host)
	if svc == nil || svc.PortByNumber(v.Port) == nil || !v.Scope.Imported(svc.Namespace, host) {
		return nil
	}
	return svc
}

// Owner returns who has the virtual host of a host; not ok if nobody.
func (v PortView) Owner(host string) (c Owner, ok bool) {
	svc := v.Service(host)
	if svc == nil {
		return v.ownerByVirtualService(host)
	}
	if !Routable(svc.PortByNumber(v.Port).Protocol) {
		return Owner{}, false
	}
	if vs, refused := v.governing(host); vs != nil {
		return Owner{host, svc, vs, refused}, true
	}
	return Owner{Host: host, Service: svc}, svc.Resolution != value.Alias
}

// ownerByVirtualService returns who has a host without a service: the first VirtualService that names it and has
// routes. On another port than 80 only one that also names a service of that port. A pattern that covers services
// stands for them and is no host of its own.
func (v PortView) ownerByVirtualService(host string) (c Owner, ok bool) {
	for _, vs := range v.naming(host) {
		refused, routed := v.verdicts(vs)
		if !routed || v.Port != anyHostPort && !v.reachesService(vs) {
			continue
		}
		if strings.HasPrefix(host, "*") && v.covers(host, nil) {
			return Owner{}, false
		}
		return Owner{host, nil, vs, refused}, true
	}
	return Owner{}, false
}

// reachesService reports whether a VirtualService governs a service of the port.
func (v PortView) reachesService(vs *value.VirtualService) bool {
	return slices.ContainsFunc(vs.Hosts, func(h string) bool {
		if strings.HasPrefix(h, "*") {
			return v.covers(h, vs)
		}
		svc := v.Service(h)
		return svc != nil && Routable(svc.PortByNumber(v.Port).Protocol)
	})
}

// covers reports whether a service of the port falls under a pattern; with a VirtualService, whether one does that it
// governs.
func (v PortView) covers(pattern string, by *value.VirtualService) bool {
	for svc := range v.Snapshot.ServicesUnder(pattern) {
		seen := v.Service(svc.Host)
		if seen == nil {
			continue
		}
		if by == nil || Routable(seen.PortByNumber(v.Port).Protocol) && slices.Contains(v.first(svc.Host), by) {
			return true
		}
	}
	return false
}

// governing returns the VirtualService in force for the service of a host, and its verdicts; nil if there is none.
func (v PortView) governing(host string) (*value.VirtualService, gen.Verdicts) {
	for _, vs := range v.first(host) {
		if refused, routed := v.verdicts(vs); routed {
			return vs, refused
		}
	}
	return nil, ""
}

// first returns the VirtualServices that may govern a host: those that name it, in order; if none does, the first of
// those with the most specific pattern.
func (v PortView) first(host string) []*value.VirtualService {
	for _, at := range v.Memo.host(v.Snapshot, host).named {
		visible := v.visible(at.services)
		switch {
		case len(visible) == 0:
		case strings.HasPrefix(at.pattern, "*"):
			return visible[:1]
		default:
			return visible
		}
	}
	return nil
}

// naming returns the VirtualServices of the mesh that the scope sees and that name exactly this host or pattern, in
// order of precedence.
func (v PortView) naming(host string) []*value.VirtualService {
	if named := v.Memo.host(v.Snapshot, host).named; len(named) > 0 && named[0].pattern == host {
		return v.visible(named[0].services)
	}
	return nil
}

// visible returns those VirtualServices of the mesh that the scope sees, in order of precedence: those that only the
// client's namespace may see first, then those exported to it by name, then public ones; in each, the oldest first.
func (v PortView) visible(all []*value.VirtualService) []*value.VirtualService {
	var out []*value.VirtualService
	for _, vs := range all {
		if v.Scope.SeesVirtualService(vs) {
			out = append(out, vs)
		}
	}
	if len(out) > 1 {
		slices.SortStableFunc(out, func(a, b *value.VirtualService) int { return v.Scope.Reach(a) - v.Scope.Reach(b) })
	}
	return out
}

// Reach returns the rank of a VirtualService by how far it is exported.
func (sc *Scope) Reach(vs *value.VirtualService) int {
	switch {
	case vs.Export.Public:
		return 2
	case sc.In(vs.Namespace):
		return 0
	}
	return 1
}

// ByPrecedence orders the VirtualServices that claim one host at a gateway: by how far they are exported, then by age.
func (sc *Scope) ByPrecedence(a, b *value.VirtualService) int {
	return cmp.Or(cmp.Compare(sc.Reach(a), sc.Reach(b)), value.CompareAge(a.Meta, b.Meta))
}

// verdicts returns the verdicts of a VirtualService's matches for the scope's proxies; routed, if any route is left on
// the port.
func (v PortView) verdicts(vs *value.VirtualService) (refused gen.Verdicts, routed bool) {
	return v.Scope.Verdicts(vs, v.Port, MeshGateway)
}

// Verdicts returns the verdicts for requests at a gateway.
func (sc *Scope) Verdicts(vs *value.VirtualService, port int, gateway string) (refused gen.Verdicts, routed bool) {
	var out []byte
	apart := false
	for _, h := range vs.HTTP {
		routed = routed || h.Leads() && len(h.Matches) == 0
		for _, m := range h.Matches {
			from := len(m.Gateways) > 0 && slices.Contains(m.Gateways, gateway) ||
				len(m.Gateways) == 0 && sc.HasLabels(m.Labels) &&
					(m.Namespace == "" || sc.In(m.Namespace))
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
func (a Owner) before(b Owner, sc *Scope) bool {
	switch {
	case (a.VirtualService == nil) != (b.VirtualService == nil):
		return a.VirtualService != nil
	case a.VirtualService == nil:
		return value.OlderService(a.Service, b.Service) < 0
	case a.VirtualService != b.VirtualService:
		if ra, rb := sc.Reach(a.VirtualService), sc.Reach(b.VirtualService); ra != rb {
			return ra < rb
		}
		return a.VirtualService.Older(b.VirtualService.Meta)
	case (a.Service == nil) != (b.Service == nil):
		return a.Service == nil
	}
	hosts := a.VirtualService.Hosts
	if ia, ib := slices.Index(hosts, a.Host), slices.Index(hosts, b.Host); ia != ib {
		return ib < 0 || ia >= 0 && ia < ib
	}
	return a.Host < b.Host
}
