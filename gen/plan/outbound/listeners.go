package outbound

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// listenerTables hold the sidecar listeners, and what they are put together from.
type listenerTables struct {
	outbound checked.Table[gen.OutboundListenerKey, encodecache.Entry]
	virtual  checked.Table[gen.VirtualOutboundKey, encodecache.Entry]
	API      checked.Table[gen.APIListenerKey, encodecache.Entry]
	// chains are the interned lists of outbound chains.
	chains *encodecache.Table[gen.ChainList, gen.ChainList]
}

func newListenerTables(f *checked.Faults) listenerTables {
	return listenerTables{
		outbound: checked.Leaves(f, "listener", xdstype.ListenerURL, gen.EncodeOutboundListener),
		virtual:  checked.Leaves(f, "listener", xdstype.ListenerURL, gen.EncodeVirtualOutbound),
		API:      checked.Leaves(f, "listener", xdstype.ListenerURL, gen.EncodeAPIListener),
		chains:   encodecache.NewTable(func(k gen.ChainList) *gen.ChainList { return &k }),
	}
}

// AddressListeners returns the outbound listeners at a service's own addresses (its VIPs; for headless TCP its
// endpoints'). For gRPC clients they are the service's API listeners.
func (t *Tables) AddressListeners(n *snapshot.Snapshot, sc *scope.Scope, svc *value.Service) []*encodecache.Entry {
	switch {
	case sc.Traits.Type == value.Proxyless:
		return t.apiListeners(n, sc, svc)
	case sc.Traits.Interception == value.NoInterception || svc.Resolution == value.Alias ||
		!sc.Imported(svc.Namespace, svc.Host):
		return nil
	}
	v := View{t, n, sc}
	var out []*encodecache.Entry
	for _, p := range svc.Ports {
		if p.Protocol.IsHTTP() || p.Protocol == value.UDP {
			continue
		}
		for _, at := range v.addressesOf(svc, p) {
			if !at.Wildcard {
				out = append(out, v.Listener(at, p.Number, v.sharing(at, ServicePort{svc, p, ""})))
			}
		}
	}
	return out
}

// WildcardListeners returns the outbound listeners at the wildcard address of one port, for all services of the scope
// that share it; with interception mode NONE at the loopback address, for all services that have the port. For gRPC
// clients they are the API listeners under short names.
func (t *Tables) WildcardListeners(n *snapshot.Snapshot, sc *scope.Scope, port int) []*encodecache.Entry {
	if sc.Traits.Type == value.Proxyless {
		return t.shortNameListeners(n, sc, port)
	}
	v := View{t, n, sc}
	at, ports := v.Everywhere(), v.wildcardPorts(port)
	if sc.Traits.Interception == value.NoInterception {
		at, ports = v.Loopback(), v.allPorts(port)
	}
	if l := v.Listener(at, port, ports); l != nil {
		return []*encodecache.Entry{l}
	}
	return nil
}

// StaticListeners returns those that every sidecar of the scope has: virtualOutbound.
func (t *Tables) StaticListeners(n *snapshot.Snapshot, sc *scope.Scope) []*encodecache.Entry {
	if sc.Traits.Interception == value.NoInterception {
		return nil
	}
	v := View{t, n, sc}
	return []*encodecache.Entry{t.listeners.virtual.Get(gen.VirtualOutboundKey{
		Bind: v.Everywhere().Bind, Port: n.Mesh.OutboundPort,
		Transparent: sc.Traits.Interception == value.TProxy,
		Fallthrough: v.fallthroughCluster(), HTTP: v.virtualHTTP(),
	})}
}
