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

// ingressPorts are the ports that a Sidecar object declares for its workloads, in place of those of services: captured ones are chains of
// virtualInbound, bound ones have listeners of their own.
func (t *Tables) ingressPorts(n *snapshot.Snapshot, sc *Scope, own *Own) (captured, bound []gen.InboundChainsKey) {
	seen := map[int]bool{}
	for _, i := range sc.Sidecar.Spec.GetIngress() {
		k := t.inboundPort(n, sc)
		k.Target, k.Port = int(i.GetPort().GetNumber()), int(i.GetPort().GetNumber())
		k.Protocol = declaredProtocol(i.GetPort().GetProtocol())
		k.Host = sc.Sidecar.Name + "." + sc.Sidecar.Namespace
		k.StatPrefix = inboundStats(n, &value.Service{ServiceKey: value.ServiceKey{Host: k.Host}}, &value.Port{Name: i.GetPort().GetName(), Number: k.Port})
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

// boundListener is the listener of a port that is really bound.
func (t *Tables) boundListener(k gen.InboundChainsKey) *encodecache.Entry {
	header := gen.InboundListenerKey{Mesh: k.Mesh, Name: gen.ListenerName(k.Bind, k.Target), Bind: k.Bind, Port: k.Target, Sidecar: k.Sidecar}
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
