package inbound

import (
	"slices"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot/value"
)

// listeners returns virtualInbound, or with interception mode NONE the listeners at the workload's real ports. omit are
// the names of outbound listeners that this proxy must not have: those at its own headless address.
func (m *maker) listeners() (add []*encodecache.Entry, omit []string) {
	if m.facts.Traits.Type == value.Proxyless {
		return m.servers(), nil
	}
	var captured, bound []gen.InboundChainsKey
	intercepted := m.facts.Traits.Interception != value.NoInterception
	switch {
	case m.declaresPorts():
		captured, bound = m.ingressPorts()
	case intercepted: // otherwise the application itself has the ports
		captured = m.targetPorts()
	}
	if intercepted {
		add = append(add, m.virtualInbound(captured))
	}
	for _, k := range bound {
		add = append(add, m.bound(k))
	}
	return add, m.atOwnAddress()
}

// atOwnAddress returns the names of the outbound listeners at the proxy's own address: an application that calls itself
// there is not intercepted.
func (m *maker) atOwnAddress() (names []string) {
	if len(m.facts.Addresses) == 0 {
		return nil
	}
	for _, target := range m.facts.Targets {
		if target.Service.ByMember() && !target.Port.Protocol.IsHTTP() {
			names = append(names, gen.ListenerName(m.facts.Addresses[0], target.Port.Number))
		}
	}
	return names
}

// virtualInbound returns the listener that gets all inbound connections of a workload with these declared ports.
func (m *maker) virtualInbound(declared []gen.InboundChainsKey) *encodecache.Entry {
	number := m.n.Mesh.InboundPort
	bind := m.facts.Traits.AnyAddress()
	rest := m.undeclared(number)
	header := gen.InboundListenerKey{
		Detection: m.n.Mesh.Detection, Name: gen.VirtualInboundName, Bind: bind, Port: number, Captured: true,
		Transparent: m.facts.Traits.Interception == value.TProxy,
	}
	header.TLS, header.HTTP = gen.Inspections(slices.Concat(rest, declared), number)
	c := &listener{header: m.tables.headers.Get(header), ports: m.tables.chains(declared)}
	for _, k := range rest {
		c.fixed = append(c.fixed, m.tables.fixed.Get(k))
	}
	return c.entry(header.Name)
}

// targetPorts returns the Keys of the workload's declared ports, in order. Of several services with one port the oldest
// decides.
func (m *maker) targetPorts() (out []gen.InboundChainsKey) {
	bind := m.facts.Traits.AnyAddress()
	for _, target := range m.facts.Targets {
		k := m.portKey(target.Number)
		k.Bind, k.Protocol, k.Host, k.Port = bind, target.Port.Protocol, target.Service.Host, target.Port.Number
		k.StatPrefix, k.Defined = m.stats(target.Service, target.Port), target.Service.Object
		if !slices.ContainsFunc(out, func(o gen.InboundChainsKey) bool { return o.Target == k.Target }) &&
			!m.n.Mesh.OwnsPort(k.Target) {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, byTarget)
	return out
}
