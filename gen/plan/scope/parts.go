package scope

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/snapshot/value"
)

// A Sidecar whose egress names ports has several listeners that each import services of their own: a request is routed
// by what the listener that takes it imports. Such a scope has a part for each, which is a scope by itself.

// partsOf are the parts of a scope whose Sidecar names ports in its egress; nil of any other.
func (sc *Scope) partsOf() (parts []*Scope) {
	if sc.Sidecar == nil || sc.Traits.Type != value.SidecarProxy {
		return nil
	}
	egress := sc.Sidecar.Spec.GetEgress()
	if !slices.ContainsFunc(egress, func(e *networking.IstioEgressListener) bool { return e.GetPort() != nil }) {
		return nil
	}
	for _, e := range egress {
		part := &Scope{Facts: sc.Facts, Labels: sc.Labels, imports: []hostImport{}, trims: sc.trims, listener: e}
		part.take(e.GetHosts())
		parts = append(parts, part)
	}
	return parts
}

// Port is the port of a part's listener; 0 of one that listens for all services that no other part does.
func (sc *Scope) Port() int { return int(sc.listener.GetPort().GetNumber()) }

// Bind is the address that a part's listener declares; empty if it declares none.
func (sc *Scope) Bind() string { return sc.listener.GetBind() }

// DeclaredPort is the port of a part's listener. A protocol that is not known is sniffed.
func (sc *Scope) DeclaredPort() *value.Port {
	p := &value.Port{Name: sc.listener.GetPort().GetName(), Number: sc.Port()}
	p.Protocol, _ = value.ProtocolNamed(sc.listener.GetPort().GetProtocol())
	return p
}

// Listens is svc as a part's listener serves it: with that port alone, or nil if it has not.
func (sc *Scope) Listens(svc *value.Service) *value.Service {
	number := sc.Port()
	switch {
	case number == 0:
		return svc
	case svc.PortByNumber(number) == nil:
		return nil
	case len(svc.Ports) == 1:
		return svc
	}
	return sc.trim(svc, []int{number})
}

// Captured is the part with the interception that its listener asks for.
func (sc *Scope) Captured() *Scope {
	out := *sc
	switch binds := sc.Traits.Binds(sc.listener.GetCaptureMode()); {
	case binds:
		out.Traits.Interception = value.NoInterception
	case out.Traits.Interception == value.NoInterception:
		out.Traits.Interception = value.Redirect
	}
	return &out
}
