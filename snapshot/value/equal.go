package value

import (
	"maps"
	"slices"
)

// Equal reports whether two endpoints are the same in every field.
func (e *Endpoint) Equal(o *Endpoint) bool {
	return e == o || e.Identity == o.Identity && e.Locality == o.Locality && e.Health == o.Health &&
		e.Weight == o.Weight &&
		e.Node == o.Node && e.Pod == o.Pod && e.HostName == o.HostName && e.SubDomain == o.SubDomain &&
		slices.Equal(e.Addresses, o.Addresses) && slices.Equal(e.Ports, o.Ports) && maps.Equal(e.Labels, o.Labels)
}

// Equal reports whether two workloads are the same in every field.
func (w *Workload) Equal(o *Workload) bool {
	return w == o || w.Namespace == o.Namespace && w.Name == o.Name && w.Locality == o.Locality && w.Node == o.Node &&
		w.ServiceAccount == o.ServiceAccount && w.Network == o.Network && w.Pod == o.Pod &&
		slices.Equal(w.Addresses, o.Addresses) && maps.Equal(w.Labels, o.Labels) &&
		maps.Equal(w.NamedPorts, o.NamedPorts) && maps.Equal(w.Ports, o.Ports)
}

// Equal reports whether two projections are the same; endpoints are compared by pointer.
func (p *Projection) Equal(o *Projection) bool {
	return p == o || p.Any == o.Any && slices.Equal(p.ServiceAccounts, o.ServiceAccounts) &&
		slices.Equal(p.MutualTLS, o.MutualTLS) && slices.Equal(p.Inline, o.Inline)
}

// Equal reports whether two visibilities are the same.
func (v Visibility) Equal(o Visibility) bool {
	return v.Public == o.Public && v.Own == o.Own && slices.Equal(v.Namespaces, o.Namespaces)
}

// Equal reports whether two services are the same in every field.
func (s *Service) Equal(o *Service) bool {
	return s == o || s.sameScalars(o) && s.Export.Equal(o.Export) && slices.Equal(s.Joined, o.Joined) &&
		slices.Equal(s.Addresses, o.Addresses) && slices.Equal(s.AutoAddresses, o.AutoAddresses) &&
		slices.Equal(s.SubjectAltNames, o.SubjectAltNames) && slices.Equal(s.ExternalIPs, o.ExternalIPs) &&
		maps.Equal(s.Labels, o.Labels) && (s.Selector == nil) == (o.Selector == nil) &&
		maps.Equal(s.Selector, o.Selector) &&
		slices.EqualFunc(s.Ports, o.Ports, func(a, b *Port) bool { return *a == *b })
}

func (s *Service) sameScalars(o *Service) bool {
	return s.ServiceKey == o.ServiceKey && s.Name == o.Name && s.Object == o.Object && s.Created == o.Created &&
		s.Registry == o.Registry &&
		s.Resolution == o.Resolution && s.External == o.External && s.Headless == o.Headless &&
		s.ExternalName == o.ExternalName &&
		s.TrafficDistribution == o.TrafficDistribution && s.NodeLocal == o.NodeLocal &&
		s.PublishNotReady == o.PublishNotReady
}

// same reports whether two values that may be missing are equal.
func same[V comparable](a, b *V) bool { return a == b || a != nil && b != nil && *a == *b }
