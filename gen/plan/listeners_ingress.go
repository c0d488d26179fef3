package plan

import (
	"net/netip"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// ingressPorts are the ports that a Sidecar object declares for its workloads, in place of those of services: captured
// ones are chains of virtualInbound, bound ones have listeners of their own.
func (t *Tables) ingressPorts(n *snapshot.Snapshot, sc *Scope, own *Own) (captured, bound []gen.InboundChainsKey) {
	seen := map[int]bool{}
	for _, i := range sc.Sidecar.Spec.GetIngress() {
		k := t.inboundPort(n, sc)
		k.Target, k.Port = int(i.GetPort().GetNumber()), int(i.GetPort().GetNumber())
		k.Protocol = declaredProtocol(i.GetPort().GetProtocol())
		k.Host = sidecarHost(sc)
		k.StatPrefix = inboundStats(n, &value.Service{ServiceKey: value.ServiceKey{Host: k.Host}},
			&value.Port{Name: i.GetPort().GetName(), Number: k.Port})
		k.Sidecar = value.Meta{Namespace: sc.Sidecar.Namespace, Name: sc.Sidecar.Name}
		if k.Bind = i.GetBind(); k.Bind == "" {
			k.Bind = ownBind(outboundView{t, n, sc}, own)
		}
		binds := bindsPort(i.GetCaptureMode(), sc)
		if seen[k.Target] || k.Protocol == value.UDP || binds && !sc.Traits.MayBind(k.Target) {
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

// sidecarHost tells a port that a Sidecar object declares in telemetry, where no service is there to do it. One of the
// root namespace counts as an object of the workload's own.
func sidecarHost(sc *Scope) string { return sc.Sidecar.Name + "." + sc.Namespace }

// ingressKey is that of the cluster of a port that a Sidecar object declares. A service that has the port at the
// workload gives the cluster its DestinationRule and its name in telemetry.
func ingressKey(n *snapshot.Snapshot, sc *Scope, own *Own, i *networking.IstioIngressListener) (gen.InboundClusterKey,
	gen.InboundClusterNames) {
	number := int(i.GetPort().GetNumber())
	t := Target{
		Service: &value.Service{ServiceKey: value.ServiceKey{Host: sidecarHost(sc), Namespace: sc.Namespace},
			Name: sc.Sidecar.Name, Registry: value.RegistryExternal},
		Port: &value.Port{Name: i.GetPort().GetName(), Number: number,
			Protocol: declaredProtocol(i.GetPort().GetProtocol())},
		Number: number,
	}
	for _, real := range own.Targets {
		if real.Number == number {
			t.Service = real.Service
			break
		}
	}
	k, names := targetKey(n, sc, t)
	if e := defaultEndpoint(i.GetDefaultEndpoint(), sc, own); e != nil {
		k.Leads, names.Default = gen.ToAddress, e
		if e.Host == gen.Loopback(true) || e.Host == gen.Loopback(false) {
			k.Leads = gen.ToLoopback
		}
	}
	return k, names
}

// defaultEndpoint is where an ingress listener forwards to; nil for where the connection was made to. 0.0.0.0 and [::]
// stand for the workload's own address of that family, or the loopback interface where it has none; the loopback
// address is that of a family that the workload has.
func defaultEndpoint(s string, sc *Scope, own *Own) *gen.IngressEndpoint {
	if strings.HasPrefix(s, "unix://") {
		return &gen.IngressEndpoint{Host: s}
	}
	at, err := netip.ParseAddrPort(s)
	if err != nil {
		return nil
	}
	e := &gen.IngressEndpoint{Port: uint32(at.Port())}
	if four := at.Addr().Is4(); at.Addr().IsLoopback() {
		e.Host = gen.Loopback(four && sc.Traits.IPv4 || !sc.Traits.IPv6)
	} else if e.Host = ownAddressOf(own, four); e.Host == "" {
		e.Host = gen.Loopback(four)
	}
	return e
}

// ownAddressOf is the proxy's first address of a family; empty if it has none.
func ownAddressOf(own *Own, four bool) string {
	for _, a := range own.Addresses {
		if ip, err := netip.ParseAddr(a); err == nil && ip.Is4() == four {
			return a
		}
	}
	return ""
}

// boundListener is the listener of a port that is really bound.
func (t *Tables) boundListener(k gen.InboundChainsKey) *encodecache.Entry {
	header := gen.InboundListenerKey{Mesh: k.Mesh, Name: gen.ListenerName(k.Bind, k.Target), Bind: k.Bind,
		Port: k.Target, Sidecar: k.Sidecar}
	header.TLS, header.HTTP = gen.Inspections([]gen.InboundChainsKey{k}, 0)
	c := &inboundContent{header: t.listeners.headers.Get(header), ports: t.inboundPorts([]gen.InboundChainsKey{k})}
	return c.entry(header.Name)
}

// ownBind is the proxy's own address where it is known, else the wildcard.
func ownBind(v outboundView, own *Own) string {
	for _, a := range own.Addresses {
		if ip, err := netip.ParseAddr(a); err == nil && ip.IsGlobalUnicast() {
			return a
		}
	}
	return v.everywhere().bind
}

// bindsPort reports whether a declared port is really bound.
func bindsPort(mode networking.CaptureMode, sc *Scope) bool {
	if mode == networking.CaptureMode_DEFAULT {
		return sc.Traits.Interception == value.NoInterception
	}
	return mode == networking.CaptureMode_NONE
}

// declaredProtocol is the protocol of a Sidecar's port, which is written in any case; what is not known is sniffed.
func declaredProtocol(name string) value.Protocol {
	for _, p := range []value.Protocol{
		value.HTTP, value.HTTP2, value.GRPC, value.GRPCWeb, value.HTTPS, value.TCP, value.TLS, value.UDP, value.Mongo, value.Redis, value.MySQL,
	} {
		if strings.EqualFold(name, string(p)) {
			return p
		}
	}
	return value.Auto
}
