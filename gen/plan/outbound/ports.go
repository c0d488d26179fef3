package outbound

import (
	"cmp"
	"slices"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Seen returns svc as the scope sees it, if its host means it and not another one, and if it has the port there. What a
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

// Before orders the ports that one listener is to serve: of two that get in each other's way the first wins.
func (v View) Before(a, b ServicePort) int {
	return cmp.Or(cmp.Compare(v.rank(a.service), v.rank(b.service)), value.OlderService(a.service, b.service))
}

// wildcardPorts returns the service ports that the listener at the wildcard address serves under one number. Of those
// that are HTTP only the first is among them: the others change nothing.
func (v View) wildcardPorts(port int) []ServicePort {
	if v.n.Mesh.OwnsPort(port) {
		return nil
	}
	ports := v.FirstHTTP(port)
	for svc := range v.sc.Candidates(v.n, port, snapshot.Wild) {
		s, p := v.Seen(svc, port)
		if p == nil {
			continue
		}
		for _, at := range v.addressesOf(s, p) {
			if at.Wildcard {
				ports = append(ports, ServicePort{s, p, at.ranges})
			}
		}
	}
	slices.SortStableFunc(ports, v.Before)
	return ports
}

// FirstHTTP returns the first of the services of a port that are HTTP.
func (v View) FirstHTTP(port int) (first []ServicePort) {
	take := func(class snapshot.PortClass) {
		for _, run := range v.sc.Runs(v.n, port, class) {
			for svc := range run {
				if len(first) > 0 && class == snapshot.PublicHTTP && value.OlderService(first[0].service, svc) < 0 {
					break // the rest of the run is younger
				}
				if s, p := v.Seen(svc, port); p != nil &&
					(len(first) == 0 || v.Before(ServicePort{s, p, ""}, first[0]) < 0) {
					first = []ServicePort{{s, p, ""}}
				}
			}
		}
	}
	if take(snapshot.SomeHTTP); len(first) == 0 {
		take(snapshot.PublicHTTP)
	}
	return first
}

// allPorts returns the service ports with one number of all services, for a listener at one address that serves them
// all.
func (v View) allPorts(port int) []ServicePort {
	var ports []ServicePort
	if !v.sc.Traits.MayBind(port) {
		return nil
	}
	for svc := range v.sc.ServicesOnPort(v.n, port) {
		if p := svc.PortByNumber(port); p.Protocol != value.UDP && svc.Resolution != value.Alias &&
			v.sc.Imported(svc.Namespace, svc.Host) {
			ports = append(ports, ServicePort{svc, p, ""})
		}
	}
	slices.SortStableFunc(ports, v.Before)
	return ports
}

// sharing returns the service ports that meet at the address of a service or an endpoint: own, and those of other
// services with the same address.
func (v View) sharing(at ListenerAddress, own ServicePort) []ServicePort {
	ports := []ServicePort{own}
	add := func(svc *value.Service) {
		if svc.ServiceKey == own.service.ServiceKey {
			return
		}
		s, p := v.Seen(svc, own.port.Number)
		if p == nil || p.Protocol.IsHTTP() || p.Protocol == value.UDP || s.Resolution == value.Alias {
			return
		}
		if slices.ContainsFunc(v.addressesOf(s, p), func(o ListenerAddress) bool { return o.Bind == at.Bind }) {
			ports = append(ports, ServicePort{s, p, ""})
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
	slices.SortStableFunc(ports, v.Before)
	return ports
}
