package outbound

import (
	"cmp"
	"slices"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Seen is svc as the scope sees it, if its host means it and not another one, and if it has the port there. What a
// scope knows only as a destination of a VirtualService has clusters, but nobody dials it: it has no listeners.
func (v View) Seen(svc *value.Service, port int) (*value.Service, *value.Port) {
	if !v.sc.Sees(svc.Export) || !v.sc.Imported(svc.Namespace, svc.Host) {
		return nil, nil
	}
	s := v.sc.Service(v.n, svc.Host)
	if s == nil || s.ServiceKey != svc.ServiceKey {
		return nil, nil
	}
	return s, s.PortByNumber(port)
}

// rank orders services before their age does: those that their own namespace keeps to itself, those exported to some,
// those of all.
func (v View) rank(svc *value.Service) int {
	switch {
	case svc.Export.Public:
		return 2
	case !v.sc.In(svc.Namespace):
		return 1
	}
	return 0
}

// Before is the order in which claims are settled.
func (v View) Before(a, b PortClaim) int {
	return cmp.Or(cmp.Compare(v.rank(a.service), v.rank(b.service)), value.OlderService(a.service, b.service))
}

// wildcardClaims are the claims to the wildcard address of a port. Of those that are HTTP only the first is among them:
// the others change nothing.
func (v View) wildcardClaims(port int) []PortClaim {
	if v.n.Mesh.OwnsPort(port) {
		return nil
	}
	claims := v.FirstHTTP(port)
	for svc := range v.sc.Candidates(v.n, port, snapshot.Wild) {
		s, p := v.Seen(svc, port)
		if p == nil {
			continue
		}
		for _, at := range v.placesOf(s, p) {
			if at.Wildcard {
				claims = append(claims, PortClaim{s, p, at.ranges})
			}
		}
	}
	slices.SortStableFunc(claims, v.Before)
	return claims
}

// FirstHTTP is the first of the services of a port that are HTTP.
func (v View) FirstHTTP(port int) (first []PortClaim) {
	take := func(class snapshot.PortClass) {
		for _, run := range v.sc.Runs(v.n, port, class) {
			for svc := range run {
				if len(first) > 0 && class == snapshot.PublicHTTP && value.OlderService(first[0].service, svc) < 0 {
					break // the rest of the run is younger
				}
				if s, p := v.Seen(svc, port); p != nil &&
					(len(first) == 0 || v.Before(PortClaim{s, p, ""}, first[0]) < 0) {
					first = []PortClaim{{s, p, ""}}
				}
			}
		}
	}
	if take(snapshot.SomeHTTP); len(first) == 0 {
		take(snapshot.PublicHTTP)
	}
	return first
}

// allClaims are the claims of all services to one address that serves for every service, at a port.
func (v View) allClaims(port int) []PortClaim {
	var claims []PortClaim
	if !v.sc.Traits.MayBind(port) {
		return nil
	}
	for svc := range v.sc.ServicesOnPort(v.n, port) {
		if p := svc.PortByNumber(port); p.Protocol != value.UDP && svc.Resolution != value.Alias &&
			v.sc.Imported(svc.Namespace, svc.Host) {
			claims = append(claims, PortClaim{svc, p, ""})
		}
	}
	slices.SortStableFunc(claims, v.Before)
	return claims
}

// sharing are the claims to an address of a service or an endpoint: own, and those of others that have the same.
func (v View) sharing(at Place, own PortClaim) []PortClaim {
	claims := []PortClaim{own}
	add := func(svc *value.Service) {
		if svc.ServiceKey == own.service.ServiceKey {
			return
		}
		s, p := v.Seen(svc, own.port.Number)
		if p == nil || p.Protocol.IsHTTP() || p.Protocol == value.UDP || s.Resolution == value.Alias {
			return
		}
		if slices.ContainsFunc(v.placesOf(s, p), func(o Place) bool { return o.Bind == at.Bind }) {
			claims = append(claims, PortClaim{s, p, ""})
		}
	}
	if own.service.ByMember() {
		for svc := range v.n.WithMember(own.port.Number, at.Bind) {
			add(svc)
		}
	} else {
		for svc := range v.n.ServicesAt(at.Bind) {
			add(svc)
		}
	}
	slices.SortStableFunc(claims, v.Before)
	return claims
}
