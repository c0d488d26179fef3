package plan

import (
	"cmp"
	"slices"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// inboundListenerKey is an inbound listener of a header and the chains of its ports.
type inboundListenerKey struct {
	name   string
	header *encodecache.Fragment
	chains *fragmentList
}

// fragmentList is a list of Fragments. Interned: equal lists are one pointer.
type fragmentList struct {
	fragment *encodecache.Fragment
	next     *fragmentList
}

// blackholeKey is what the chain for virtualInbound's own port is made from.
type blackholeKey struct {
	mesh    *value.Mesh
	filters value.Filters
}

func newInboundEntry(k inboundListenerKey) *encodecache.Entry {
	return encodecache.NewComposite(ListenerType, k.name, k.header, func(yield func(*encodecache.Fragment) bool) {
		for c := k.chains; c != nil; c = c.next {
			if !yield(c.fragment) {
				return
			}
		}
	})
}

// inboundListeners are virtualInbound, or with interception mode NONE the listeners at the workload's real ports. omit are the names of
// outbound listeners that this proxy must not have: those at its own headless address.
func (t *Tables) inboundListeners(n *snapshot.Snapshot, sc *Scope, own *Own) (add []*encodecache.Entry, omit []string) {
	if sc.Traits.Type == value.Proxyless {
		return t.serverListeners(own), nil
	}
	var captured, bound []gen.InboundChainsKey
	intercepted := sc.Traits.Interception != value.NoInterception
	switch {
	case sc.Sidecar != nil && len(sc.Sidecar.Spec.GetIngress()) > 0:
		captured, bound = t.ingressPorts(n, sc, own)
	case intercepted: // otherwise the application itself has the ports
		captured = t.targetPorts(n, sc, own)
	}
	if intercepted {
		add = append(add, t.virtualInbound(n, sc, captured))
	}
	for _, k := range bound {
		add = append(add, t.boundListener(k))
	}
	return add, ownMemberListeners(own)
}

// ownMemberListeners are the names of the outbound listeners at the proxy's own address: an application that calls itself there is not
// intercepted.
func ownMemberListeners(own *Own) (names []string) {
	if len(own.Addresses) == 0 {
		return nil
	}
	for _, target := range own.Targets {
		if byMember(target.Service) && !target.Port.Protocol.IsHTTP() {
			names = append(names, gen.ListenerName(own.Addresses[0], target.Port.Number))
		}
	}
	return names
}

// virtualInbound is the listener that gets all inbound connections of a workload with these declared ports.
func (t *Tables) virtualInbound(n *snapshot.Snapshot, sc *Scope, declared []gen.InboundChainsKey) *encodecache.Entry {
	port := int(n.Mesh.Config.GetProxyInboundListenPort())
	bind := outboundView{t, n, sc}.everywhere().bind
	ports := append([]gen.InboundChainsKey{t.inboundPort(n, sc)}, declared...)
	header := gen.InboundListenerKey{
		Mesh: n.Mesh, Name: gen.VirtualInboundName, Bind: bind, Port: port, Captured: true, Transparent: sc.Traits.Interception == value.TProxy,
	}
	header.TLS, header.HTTP = gen.Inspections(ports, port)
	chains := t.inboundChains(ports)
	chains = t.listeners.inChains.Get(fragmentList{t.listeners.blackholes.Get(blackholeKey{n.Mesh, tcpFilters(sc)}), chains})
	return t.listeners.inbound.Get(inboundListenerKey{header.Name, t.listeners.headers.Get(header), chains})
}

// tcpFilters are those of the proxy's own filters that a chain without HTTP may have.
func tcpFilters(sc *Scope) value.Filters { return sc.Traits.Filters & value.TCPMetadataExchange }

// inboundPort is the Key of the chains for ports that no service declares, and the common part of those of declared ones.
func (t *Tables) inboundPort(n *snapshot.Snapshot, sc *Scope) gen.InboundChainsKey {
	return gen.InboundChainsKey{
		Mesh: n.Mesh, Filters: sc.Traits.Filters, HTTP10: sc.Traits.HTTP10, Protocol: value.Auto,
		StatPrefix: inboundStats(n, &value.Service{}, &value.Port{Name: gen.VirtualInboundName}),
	}
}

// inboundStats is the name that the mesh gives the statistics of a workload's port; empty where it has no pattern for them.
func inboundStats(n *snapshot.Snapshot, svc *value.Service, port *value.Port) string {
	return gen.StatName{Mesh: n.Mesh, Service: svc, Port: port}.Of(n.Mesh.Config.GetInboundClusterStatName(), "")
}

// targetPorts are the Keys of the workload's declared ports, in order. Of several services with one port the oldest decides.
func (t *Tables) targetPorts(n *snapshot.Snapshot, sc *Scope, own *Own) (out []gen.InboundChainsKey) {
	bind := outboundView{t, n, sc}.everywhere().bind
	for _, target := range own.Targets {
		k := t.inboundPort(n, sc)
		k.Bind, k.Target, k.Protocol, k.Host, k.Port = bind, target.Number, target.Port.Protocol, target.Service.Host, target.Port.Number
		k.StatPrefix = inboundStats(n, target.Service, target.Port)
		if !slices.ContainsFunc(out, func(o gen.InboundChainsKey) bool { return o.Target == k.Target }) && !ownPort(n, k.Target) {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, byTarget)
	return out
}

func byTarget(a, b gen.InboundChainsKey) int { return cmp.Compare(a.Target, b.Target) }

// inboundChains are the chains of ports, each a Fragment.
func (t *Tables) inboundChains(ports []gen.InboundChainsKey) (list *fragmentList) {
	for _, k := range slices.Backward(ports) {
		list = t.listeners.inChains.Get(fragmentList{t.listeners.inPorts.Get(k), list})
	}
	return list
}
