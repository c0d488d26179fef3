package gen

import (
	"slices"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotd/pilotd/gen/check"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Fault is a rule of its receivers that something breaks which was made of a Key.
type Fault struct {
	check.Fault
	// Of are the objects that are to blame; empty: it follows from the Key's own.
	Of []value.ObjectKey
}

// faultsOf returns check's faults, that are about the Key's own objects.
func faultsOf(list []check.Fault) (out []Fault) {
	for _, f := range list {
		out = append(out, Fault{Fault: f})
	}
	return out
}

// sealed returns the encoded message where it broke no rule, also in what is packed in it; else no bytes, and what is
// wrong.
func sealed(b []byte, list []check.Fault) ([]byte, []Fault) {
	if list = append(list, check.Packed(b)...); len(list) > 0 {
		return nil, faultsOf(list)
	}
	return b, nil
}

// SealCluster encodes a cluster, whose metadata are maps of several entries. Like all functions of this file it gives
// no bytes, and what is wrong, where Envoy would refuse the message.
func SealCluster(c *clusterpb.Cluster) ([]byte, []Fault) {
	return sealed(MarshalSorted(c), check.Cluster(c))
}

// EncodeCluster encodes an outbound cluster.
func EncodeCluster(k ClusterKey) ([]byte, []Fault) {
	b, list := SealCluster(Cluster(k))
	for i := range list {
		if list[i].Within("load_assignment") { // what a rule says nothing of
			list[i].Of = k.Service.Objects()
		}
	}
	return b, list
}

// EncodeInboundCluster encodes what all inbound clusters of a kind share, with names that stand for theirs.
func EncodeInboundCluster(k InboundClusterKey) ([]byte, []Fault) {
	return SealCluster(InboundCluster(k, InboundClusterNames{IPv4: k.IPv4, Target: 1}))
}

// EncodeVirtualHost encodes a virtual host as a field of its RouteConfiguration. Of several VirtualServices those are
// left out whose own routes break a rule, as long as one stays.
func EncodeVirtualHost(k VirtualHostKey) ([]byte, []Fault) {
	vh := VirtualHost(k)
	list := check.VirtualHost(vh, k.RegexSize)
	b, found := sealed(virtualHostField(k, vh), list)
	if len(found) == 0 || k.More == nil {
		return b, found
	}
	good, bad := k.withoutBad()
	if good.Routes.Service == nil {
		return nil, bad
	}
	vh = VirtualHost(good)
	b, rest := sealed(virtualHostField(good, vh), check.VirtualHost(vh, k.RegexSize))
	return b, append(bad, rest...)
}

// withoutBad returns k without those VirtualServices whose own routes break a rule, and what is wrong with them.
func (k VirtualHostKey) withoutBad() (good VirtualHostKey, bad []Fault) {
	var keep []RoutesKey
	for l := (&RoutesLink{k.Routes, k.More}); l != nil; l = l.Next {
		vh := &routepb.VirtualHost{Name: k.Part(), Domains: []string{"*"}, Routes: routesOf(l.RoutesKey, k.Mesh)}
		_, list := sealed(MarshalSorted(vh), check.VirtualHost(vh, k.RegexSize))
		for i := range list {
			list[i].Of = one(l.Service.Object())
		}
		if bad = append(bad, list...); len(list) == 0 {
			keep = append(keep, l.RoutesKey)
		}
	}
	good, good.Routes, good.More = k, RoutesKey{}, nil
	for i, r := range slices.Backward(keep) {
		if i == 0 {
			good.Routes = r
		} else {
			good.More = &RoutesLink{r, good.More}
		}
	}
	return good, bad
}

// EncodeRouteConfiguration encodes a route configuration without its virtual hosts.
func EncodeRouteConfiguration(k RouteConfigurationKey) ([]byte, []Fault) {
	m := RouteConfiguration(k)
	return sealed(Marshal(m), check.Message(m))
}

// EncodeCatchAll encodes the virtual host of all unknown hosts as a field of its RouteConfiguration.
func EncodeCatchAll(k CatchAllKey) ([]byte, []Fault) {
	vh := catchAll(k)
	return sealed(Marshal(&routepb.RouteConfiguration{VirtualHosts: []*routepb.VirtualHost{vh}}),
		check.VirtualHost(vh, 0))
}

// EncodeBlackhole encodes the virtual host that answers 404 as a field of its RouteConfiguration.
func EncodeBlackhole(k BlackholeKey) ([]byte, []Fault) {
	vh := blackhole(k)
	return sealed(Marshal(&routepb.RouteConfiguration{VirtualHosts: []*routepb.VirtualHost{vh}}),
		check.VirtualHost(vh, 0))
}

// sealListener encodes a listener. Chains that break a rule are left out alone where another one stays. of says what
// each chain comes from; it may be nil.
func sealListener(l *listenerpb.Listener, of func(i int) []value.ObjectKey) ([]byte, []Fault) {
	var out []Fault
	good := l.GetFilterChains()[:0:0]
	for i, c := range l.GetFilterChains() {
		_, list := sealed(Marshal(c), append(check.FilterChain(c), check.Overlap(good, c)...))
		for j := range list {
			if of != nil {
				list[j].Of = of(i)
			}
		}
		if out = append(out, list...); len(list) == 0 {
			good = append(good, c)
		}
	}
	if len(out) > 0 && len(good) == 0 && l.GetDefaultFilterChain() == nil {
		return nil, out
	}
	l.FilterChains = good
	b, list := sealed(Marshal(l), check.Listener(l))
	return b, append(out, list...)
}

// EncodeOutboundListener encodes an outbound listener.
func EncodeOutboundListener(k OutboundListenerKey) ([]byte, []Fault) {
	var of [][]value.ObjectKey
	for c := k.Chains; c != nil; c = c.Next {
		// as OutboundListener tells the default chain from the others
		if !c.Chain.MatchesAll() || k.Chains.Next == nil {
			of = append(of, c.Chain.Objects())
		}
	}
	return sealListener(OutboundListener(k), func(i int) []value.ObjectKey { return of[i] })
}

// EncodeVirtualOutbound encodes the listener that catches all outbound connections.
func EncodeVirtualOutbound(k VirtualOutboundKey) ([]byte, []Fault) {
	return sealListener(VirtualOutbound(k), nil)
}

// EncodeAPIListener encodes the listener of a name that gRPC clients dial.
func EncodeAPIListener(k APIListenerKey) ([]byte, []Fault) { return sealListener(APIListener(k), nil) }

// EncodeServerListener encodes the listener of a gRPC server.
func EncodeServerListener(k ServerListenerKey) ([]byte, []Fault) {
	b, found := sealListener(ServerListener(k), nil)
	return b, append(found, k.Access.Faults()...)
}

// EncodeInboundListener encodes an inbound listener without its filter chains.
func EncodeInboundListener(k InboundListenerKey) ([]byte, []Fault) {
	l := InboundListener(k)
	return sealed(Marshal(l), check.Listener(l))
}

// EncodeInboundRest encodes the chains of a port that nobody declares, or of all such ports, as fields of a listener.
func EncodeInboundRest(k InboundChainsKey) ([]byte, []Fault) {
	chains := InboundChains(k)
	if k.Own != 0 {
		chains = append([]*listenerpb.FilterChain{InboundBlackhole(k.Own, k.Filters)}, chains...)
	}
	return sealChains(chains, k.Access)
}

// EncodeInboundChains encodes the chains of a declared port as fields of a listener.
func EncodeInboundChains(k InboundChainsKey) ([]byte, []Fault) {
	return sealChains(InboundChains(k), k.Access)
}

// sealChains encodes chains. Policies that break a rule are still in them, as what refuses more than they say.
func sealChains(chains []*listenerpb.FilterChain, access AccessKey) ([]byte, []Fault) {
	var list []check.Fault
	for i, c := range chains {
		list = append(append(list, check.FilterChain(c)...), check.Overlap(chains[:i], c)...)
	}
	b, found := sealed(InboundChainFields(chains), list)
	return b, append(found, access.Faults()...)
}

// EncodeGatewayHeader encodes a gateway's listener without its filter chains.
func EncodeGatewayHeader(k GatewayListenerKey) ([]byte, []Fault) {
	l := GatewayHeader(k)
	return sealed(Marshal(l), check.Listener(l))
}

// EncodeGatewayChain encodes a chain of a gateway as a field of its listener.
func EncodeGatewayChain(k GatewayChainKey) ([]byte, []Fault) {
	c := GatewayChain(k)
	b, list := sealed(MarshalSorted(&listenerpb.Listener{FilterChains: []*listenerpb.FilterChain{c}}),
		check.FilterChain(c))
	if gateway := ofKind(k.Gateway, value.KindGateway); len(gateway) > 0 {
		for i := range list {
			if list[i].Within("transport_socket") || k.RouteName != "" {
				list[i].Of = gateway
			}
		}
	}
	return b, append(list, k.Access.Faults()...)
}
