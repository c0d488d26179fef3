package inbound

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/workload"
	"github.com/pilotd/pilotd/snapshot/value"
)

// ingressPorts returns the Keys of the ports that a Sidecar object declares for its workloads, in place of those of
// services: captured ones are chains of virtualInbound, bound ones have listeners of their own.
func (m *maker) ingressPorts() (captured, bound []gen.InboundChainsKey) {
	seen := map[int]bool{}
	for _, i := range m.facts.Sidecar.Ingress {
		k := m.portKey(i.Port.Number)
		k.Port, k.Protocol = k.Target, i.Port.Protocol
		k.Host = m.sidecarHost()
		k.StatPrefix = m.stats(&value.Service{ServiceKey: value.ServiceKey{Host: k.Host}},
			&value.Port{Name: i.Port.Name, Number: k.Port})
		k.Sidecar = value.Meta{Namespace: m.facts.Sidecar.Namespace, Name: m.facts.Sidecar.Name}
		if i.TLS != nil && k.Mode == value.Disabled {
			k.TLS, k.Servers, k.Protocol = i.TLS, m.n.Mesh.Servers, i.Port.Protocol.Inside()
		}
		if k.Bind = i.Bind; k.Bind == "" {
			k.Bind = m.ownAddress()
		}
		binds := m.facts.Traits.Binds(i.Capture)
		if seen[k.Target] || k.Protocol == value.UDP || binds && !m.facts.Traits.MayBind(k.Target) {
			continue
		}
		seen[k.Target] = true
		if binds {
			bound = append(bound, k)
		} else {
			captured = append(captured, k)
		}
	}
	slices.SortFunc(captured, byTarget)
	return captured, bound
}

// sidecarHost returns the host that telemetry has for a port that a Sidecar object declares and no service has. An
// object of the root namespace counts as one of the workload's own namespace.
func (m *maker) sidecarHost() string { return m.facts.Sidecar.Name + "." + m.facts.Namespace }

// ingressKey returns the Key of the cluster of a port that a Sidecar object declares. A service that has the port at
// the workload gives the cluster its DestinationRule and its name in telemetry.
func (m *maker) ingressKey(i *value.IngressListener) (gen.InboundClusterKey, gen.InboundClusterNames) {
	number := i.Port.Number
	t := workload.Target{
		Service: &value.Service{ServiceKey: value.ServiceKey{Host: m.sidecarHost(), Namespace: m.facts.Namespace},
			Name: m.facts.Sidecar.Name, Registry: value.RegistryExternal},
		Port:   &value.Port{Name: i.Port.Name, Number: number, Protocol: i.Port.Protocol},
		Number: number,
	}
	for _, real := range m.facts.Targets {
		if real.Number == number {
			t.Service = real.Service
			break
		}
	}
	k, names := m.targetKey(t)
	if e := m.defaultEndpoint(i.Forward); e != nil {
		k.Leads, names.Default = gen.ToAddress, e
		if e.Host == gen.Loopback(true) || e.Host == gen.Loopback(false) {
			k.Leads = gen.ToLoopback
		}
	}
	return k, names
}

// defaultEndpoint returns where an ingress listener forwards to; nil for where the connection was made to. 0.0.0.0 and
// [::] stand for the workload's own address of that family, or the loopback interface where it has none; the loopback
// address is that of a family that the workload has.
func (m *maker) defaultEndpoint(s string) *gen.IngressEndpoint {
	if strings.HasPrefix(s, "unix://") {
		return &gen.IngressEndpoint{Host: s}
	}
	at, err := netip.ParseAddrPort(s)
	if err != nil {
		return nil
	}
	e := &gen.IngressEndpoint{Port: uint32(at.Port())}
	if four := at.Addr().Is4(); at.Addr().IsLoopback() {
		e.Host = gen.Loopback(four && m.facts.Traits.IPv4 || !m.facts.Traits.IPv6)
	} else if e.Host = m.ownAddressOf(four); e.Host == "" {
		e.Host = gen.Loopback(four)
	}
	return e
}

// ownAddressOf returns the proxy's first address of a family; empty if it has none.
func (m *maker) ownAddressOf(four bool) string {
	for _, a := range m.facts.Addresses {
		if ip, err := netip.ParseAddr(a); err == nil && ip.Is4() == four {
			return a
		}
	}
	return ""
}

// bound returns the listener of a port that is really bound.
func (m *maker) bound(k gen.InboundChainsKey) *encodecache.Entry {
	header := gen.InboundListenerKey{Detection: m.n.Mesh.Detection, Name: gen.ListenerName(k.Bind, k.Target), Bind: k.Bind,
		Port: k.Target, Sidecar: k.Sidecar}
	header.TLS, header.HTTP = gen.Inspections([]gen.InboundChainsKey{k}, 0)
	c := &listener{header: m.tables.headers.Get(header), ports: m.tables.chains([]gen.InboundChainsKey{k})}
	return c.entry(header.Name)
}

// ownAddress returns the proxy's own address where it is known, else the wildcard.
func (m *maker) ownAddress() string {
	for _, a := range m.facts.Addresses {
		if ip, err := netip.ParseAddr(a); err == nil && ip.IsGlobalUnicast() {
			return a
		}
	}
	return m.facts.Traits.AnyAddress()
}
