package gen

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/pilotd/pilotd/snapshot/value"
)

// headerPart is the name of the part of a composite resource that holds all but its list of parts.
const headerPart = "header"

// objects joins keys of objects, each once, and leaves out those that name nothing.
func objects(lists ...[]value.ObjectKey) (out []value.ObjectKey) {
	for _, list := range lists {
		for _, k := range list {
			if k != (value.ObjectKey{}) && !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	return out
}

func one(k value.ObjectKey) []value.ObjectKey { return []value.ObjectKey{k} }

// ofKind returns the object with a Meta; none for the zero Meta.
func ofKind(m value.Meta, kind value.Kind) []value.ObjectKey {
	if m == (value.Meta{}) {
		return nil
	}
	return one(m.Object(kind))
}

// ofMesh returns the mesh's configuration.
func ofMesh() []value.ObjectKey { return one((*value.Mesh)(nil).Object()) }

// ofPart returns the mesh's configuration where a Key holds a part of it.
func ofPart[P any](part *P) []value.ObjectKey {
	if part == nil {
		return nil
	}
	return ofMesh()
}

// Part returns the name of the cluster.
func (k ClusterKey) Part() string { return ClusterName(k.Port.Number, k.Subset, k.Service.Host) }

// Objects returns the DestinationRules and what defines the service.
func (k ClusterKey) Objects() []value.ObjectKey {
	return objects(k.Rule.Objects(), k.Service.Objects(), ofPart(k.Mesh))
}

// Objects returns the mesh's configuration.
func (k StaticClusterKey) Objects() []value.ObjectKey { return ofPart(k.Mesh) }

// Part returns "": the names are others' part.
func (k InboundClusterKey) Part() string { return "" }

// Objects returns the DestinationRules and the Sidecar object that limit connections.
func (k InboundClusterKey) Objects() []value.ObjectKey {
	return objects(k.Rule.Objects(), ofKind(k.Sidecar, value.KindSidecar), ofPart(k.Mesh))
}

// Objects returns what defines the services at the port.
func (n *InboundClusterNames) Objects() (out []value.ObjectKey) {
	for _, s := range n.Services {
		out = objects(out, s.Objects())
	}
	return out
}

// Part returns the name of the virtual host.
func (k VirtualHostKey) Part() string { return HostPort(k.Host, k.Port) }

// Objects returns the VirtualServices, the DestinationRules by which requests are hashed, and what defines the host.
func (k VirtualHostKey) Objects() []value.ObjectKey {
	var rules, hashes []value.ObjectKey
	add := func(r RoutesKey) {
		if r.Service != nil {
			rules = append(rules, r.Service.Objects()...)
		}
		for d := r.Destinations; d != nil; d = d.Next {
			hashes = append(hashes, d.Rule.Objects()...)
		}
	}
	add(k.Routes)
	for l := k.More; l != nil; l = l.Next {
		add(l.RoutesKey)
	}
	return objects(rules, hashes, k.Rule.Objects(), one(k.Defined), ofPart(k.Mesh))
}

// Part names the header.
func (k RouteConfigurationKey) Part() string { return headerPart }

// Objects returns none: a header says nothing of any object.
func (k RouteConfigurationKey) Objects() []value.ObjectKey { return nil }

// Part names the virtual host of all unknown hosts.
func (k CatchAllKey) Part() string { return "*" }

// Objects returns the mesh's configuration.
func (k CatchAllKey) Objects() []value.ObjectKey { return ofMesh() }

// Part returns the name of the virtual host.
func (k BlackholeKey) Part() string { return HostPort("blackhole", k.Port) }

// Objects returns none: no VirtualService has a part in it.
func (k BlackholeKey) Objects() []value.ObjectKey { return nil }

// Part returns the name of the listener.
func (k OutboundListenerKey) Part() string { return k.Name() }

// Objects returns those of the chains.
func (k OutboundListenerKey) Objects() (out []value.ObjectKey) {
	for c := k.Chains; c != nil; c = c.Next {
		out = objects(out, c.Chain.Objects())
	}
	return objects(out, ofPart(k.Mesh))
}

// Objects returns the VirtualService that made the chain, and what defines its service.
func (k ChainKey) Objects() []value.ObjectKey {
	return objects(ofKind(k.VirtualService, value.KindVirtualService), one(k.Defined))
}

// Part returns the name of the listener.
func (k VirtualOutboundKey) Part() string { return VirtualOutboundName }

// Objects returns the mesh's configuration.
func (k VirtualOutboundKey) Objects() []value.ObjectKey { return ofMesh() }

// Part returns the name of the listener.
func (k APIListenerKey) Part() string { return k.Name }

// Objects returns what defines the service.
func (k APIListenerKey) Objects() []value.ObjectKey { return objects(one(k.Defined)) }

// Part returns the name of the listener.
func (k ServerListenerKey) Part() string { return k.Name() }

// Objects returns the policies of the workload.
func (k ServerListenerKey) Objects() []value.ObjectKey { return k.Access.Policies.Objects() }

// Part names the header.
func (k InboundListenerKey) Part() string { return headerPart }

// Objects returns the Sidecar object that asks for the listener, and the mesh's configuration.
func (k InboundListenerKey) Objects() []value.ObjectKey {
	return objects(ofKind(k.Sidecar, value.KindSidecar), ofMesh())
}

// Part names the chains of ports that nobody declares.
func (k InboundChainsKey) Part() string {
	if k.Target != 0 {
		return "virtualInbound " + strconv.Itoa(k.Target)
	}
	return "virtualInbound"
}

// Objects returns the Sidecar object or what defines the service, the policies, and the mesh's configuration.
func (k InboundChainsKey) Objects() []value.ObjectKey {
	return objects(ofKind(k.Sidecar, value.KindSidecar), one(k.Defined), one(k.Policy), k.Access.Policies.Objects(),
		ofPart(k.Mesh))
}

// Part returns the name of the chains.
func (n *InboundNames) Part() string { return n.chain(true) }

// Part names the header.
func (k GatewayListenerKey) Part() string { return headerPart }

// Objects returns the mesh's configuration, where it says something of the listener.
func (k GatewayListenerKey) Objects() []value.ObjectKey {
	if k.ProxyProtocol {
		return ofMesh()
	}
	return nil
}

// Part returns what the chain takes and where it leads.
func (k GatewayChainKey) Part() string {
	return cmp.Or(k.ServerNames, "*") + " " + cmp.Or(k.RouteName, k.TCP.StatPrefix)
}

// Objects returns the VirtualService that the chain comes from, the Gateway or those that share it, and the mesh's
// configuration.
func (k GatewayChainKey) Objects() []value.ObjectKey {
	return objects(ofKind(k.VirtualService, value.KindVirtualService), ofKind(k.Gateway, value.KindGateway), k.sharers(),
		k.Access.Policies.Objects(), ofPart(k.Mesh), ofPart(k.Servers))
}

// sharers returns the Gateways that share the chain.
func (k GatewayChainKey) sharers() (out []value.ObjectKey) {
	for gateway := range strings.Lines(k.Sharers) {
		namespace, name, _ := strings.Cut(strings.TrimSuffix(gateway, "\n"), "/")
		out = append(out, value.Meta{Namespace: namespace, Name: name}.Object(value.KindGateway))
	}
	return out
}
