package gen

import (
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	originaldstpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/original_dst/v3"
	originalsrcpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/original_src/v3"
	hcmpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// InboundListenerKey is what an inbound listener is made from, but for its filter chains.
type InboundListenerKey struct {
	// Detection is how long an inspector may wait for bytes of the client.
	Detection value.Duration
	// Name is virtualInbound, or that of a listener at a real port.
	Name string
	Bind string
	Port int
	// Captured tells that connections are redirected to the listener, which looks up where they were meant to go.
	// Transparent tells that TPROXY does that, so that the listener keeps their source address too.
	Captured, Transparent bool

	// Sidecar is the Sidecar object that asks for a listener at a real port; zero otherwise.
	Sidecar value.Meta

	// TLS and HTTP say for which ports the inspectors look into connections.
	TLS, HTTP Inspection
}

// Inspection says for which ports an inspector looks into connections. Comparable.
type Inspection struct {
	// On looks into the connections of all ports but Except. Without it only those of Except are looked into.
	On bool
	// Except are port numbers in order, joined by spaces.
	Except string
}

// inspector makes the filter with the condition under which it stays out; nothing, if that is always.
func (i Inspection) inspector(make func(
	*listenerpb.ListenerFilterChainMatchPredicate) *listenerpb.ListenerFilter) []*listenerpb.ListenerFilter {
	switch {
	case i.Except == "" && !i.On:
		return nil
	case i.Except == "":
		return []*listenerpb.ListenerFilter{make(nil)}
	case i.On:
		return []*listenerpb.ListenerFilter{make(portsMatch(i.Except))}
	}
	return []*listenerpb.ListenerFilter{make(&listenerpb.ListenerFilterChainMatchPredicate{
		Rule: &listenerpb.ListenerFilterChainMatchPredicate_NotMatch{NotMatch: portsMatch(i.Except)},
	})}
}

func portsMatch(ports string) *listenerpb.ListenerFilterChainMatchPredicate {
	var rules []*listenerpb.ListenerFilterChainMatchPredicate
	for p := range strings.FieldsSeq(ports) {
		n, _ := strconv.Atoi(p)
		rules = append(rules, &listenerpb.ListenerFilterChainMatchPredicate{
			Rule: &listenerpb.ListenerFilterChainMatchPredicate_DestinationPortRange{
				DestinationPortRange: &typepb.Int32Range{Start: int32(n), End: int32(n + 1)},
			}})
	}
	if len(rules) == 1 {
		return rules[0]
	}
	return &listenerpb.ListenerFilterChainMatchPredicate{Rule: &listenerpb.ListenerFilterChainMatchPredicate_OrMatch{
		OrMatch: &listenerpb.ListenerFilterChainMatchPredicate_MatchSet{Rules: rules},
	}}
}

// originalDestination finds out where an intercepted connection was going.
func originalDestination() *listenerpb.ListenerFilter {
	return &listenerpb.ListenerFilter{
		Name:       "envoy.filters.listener.original_dst",
		ConfigType: &listenerpb.ListenerFilter_TypedConfig{TypedConfig: anyOf(&originaldstpb.OriginalDst{})},
	}
}

// InboundListener makes an inbound listener without its filter chains.
func InboundListener(k InboundListenerKey) *listenerpb.Listener {
	l := &listenerpb.Listener{
		Name:                                 k.Name,
		Address:                              SocketAddress(k.Bind, uint32(k.Port)),
		TrafficDirection:                     corev3.TrafficDirection_INBOUND,
		ContinueOnListenerFiltersTimeout:     true,
		ListenerFiltersTimeout:               detectionTimeout(k.Detection),
		MaxConnectionsToAcceptPerSocketEvent: wrapperspb.UInt32(1),
	}
	if k.Captured {
		l.ListenerFilters = append(l.ListenerFilters, originalDestination())
	}
	if k.Transparent {
		l.Transparent = wrapperspb.Bool(true)
		l.ListenerFilters = append(l.ListenerFilters, &listenerpb.ListenerFilter{
			Name:       "envoy.filters.listener.original_src",
			ConfigType: &listenerpb.ListenerFilter_TypedConfig{TypedConfig: anyOf(&originalsrcpb.OriginalSrc{Mark: 1337})},
		})
	}
	// TLS first: the other does not look into what is found to be TLS.
	l.ListenerFilters = append(l.ListenerFilters, k.TLS.inspector(TLSInspector)...)
	l.ListenerFilters = append(l.ListenerFilters, k.HTTP.inspector(httpInspector)...)
	return l
}

// Inspections says which inspectors a listener with the chains of these ports needs, given in order of Target;
// blackhole is the port of the chain that needs neither, 0 without one.
func Inspections(ports []InboundChainsKey, blackhole int) (tls, http Inspection) {
	needs := map[int][2]bool{}
	var order []int
	if blackhole != 0 {
		needs[blackhole] = [2]bool{}
		order = append(order, blackhole)
	}
	for _, k := range ports {
		var n [2]bool
		for _, m := range inboundMatches(k) {
			n[0] = n[0] || m.transport == tlsTransport
			n[1] = n[1] || m.transport == rawTransport && len(m.alpn) > 0
		}
		needs[k.Target] = n
		order = append(order, k.Target)
	}
	return inspection(needs, order, 0, true), inspection(needs, order, 1, false)
}

// inspection returns when the inspector i looks at a connection. optIn: where unknown ports need none, those that do
// are listed; otherwise those that do not.
func inspection(needs map[int][2]bool, order []int, i int, optIn bool) (out Inspection) {
	out.On = needs[0][i] || !optIn
	any := false
	var except []string
	for _, p := range slices.Sorted(slices.Values(order)) {
		any = any || needs[p][i]
		if needs[p][i] != out.On && (p != 0 || !optIn) {
			except = append(except, strconv.Itoa(p))
		}
	}
	if !any {
		return Inspection{}
	}
	out.Except = strings.Join(except, " ")
	return out
}

// inboundRoutes returns the one route of an inbound chain: everything to the workload.
func inboundRoutes(k InboundChainsKey) *hcmpb.HttpConnectionManager_RouteConfig {
	forever := durationpb.New(0)
	action := &routepb.RouteAction{
		ClusterSpecifier: &routepb.RouteAction_Cluster{Cluster: k.names().cluster()},
		Timeout:          forever,
		MaxStreamDuration: &routepb.RouteAction_MaxStreamDuration{MaxStreamDuration: forever,
			GrpcTimeoutHeaderMax: forever},
	}
	if k.Protocol != value.GRPC && k.Protocol != value.GRPCWeb {
		action.RetryPolicy = &routepb.RetryPolicy{RetryOn: "reset-before-request", NumRetries: wrapperspb.UInt32(2)}
	}
	return &hcmpb.HttpConnectionManager_RouteConfig{RouteConfig: &routepb.RouteConfiguration{
		Name:             k.names().cluster(),
		ValidateClusters: wrapperspb.Bool(false),
		VirtualHosts: []*routepb.VirtualHost{{
			Name:    k.names().virtualHost(),
			Domains: []string{"*"},
			Routes: []*routepb.Route{{
				Name:      "default",
				Match:     &routepb.RouteMatch{PathSpecifier: &routepb.RouteMatch_Prefix{Prefix: "/"}},
				Decorator: &routepb.Decorator{Operation: k.names().operation()},
				Action:    &routepb.Route_Route{Route: action},
			}},
		}},
	}}
}
