package scope

import (
	"slices"
	"unique"

	"github.com/pilotd/pilotd/snapshot/value"
)

// A Sidecar whose egress names ports has several listeners that each import services of their own: a request is routed
// by what the listener that takes it imports. Such a scope has a part for each, which is a scope by itself.

// partsOf returns the parts of a scope whose Sidecar names ports in its egress; nil of any other.
func (sc *Scope) partsOf() (parts []*Scope) {
	if sc.Sidecar == nil || sc.Traits.Type != value.SidecarProxy {
		return nil
	}
	egress := sc.Sidecar.Egress
	if !slices.ContainsFunc(egress, func(e *value.EgressListener) bool { return e.Port != nil }) {
		return nil
	}
	for _, e := range egress {
		part := &Scope{Facts: sc.Facts, Labels: sc.Labels, trims: sc.trims, listener: e}
		part.imports = []unique.Handle[hostImport]{} // not nil: that is everything
		part.take(e.Hosts)
		parts = append(parts, part)
	}
	return parts
}

// Port returns the port of a part's listener; 0 of one that listens for all services that no other part does.
func (sc *Scope) Port() int {
	if sc.listener == nil || sc.listener.Port == nil {
		return 0
	}
	return sc.listener.Port.Number
}

// Bind returns the address that a part's listener declares; empty if it declares none.
func (sc *Scope) Bind() string { return sc.listener.Bind }

// DeclaredPort returns the port of a part's listener. A protocol that is not known is sniffed.
func (sc *Scope) DeclaredPort() *value.Port {
	p := sc.listener.Port
	return &value.Port{Name: p.Name, Number: p.Number, Protocol: p.Protocol}
}

// Listens returns svc as a part's listener serves it: with that port alone, or nil if it has not.
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

// Captured returns the part with the interception that its listener asks for.
func (sc *Scope) Captured() *Scope {
	out := *sc
	switch binds := sc.Traits.Binds(sc.listener.Capture); {
	case binds:
		out.Traits.Interception = value.NoInterception
	case out.Traits.Interception == value.NoInterception:
		out.Traits.Interception = value.Redirect
	}
	return &out
}
