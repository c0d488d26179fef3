package gen

import (
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	httpinspectorpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/http_inspector/v3"
	tlsinspectorpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// OutboundListenerKey is what an outbound listener is made from: one bind address and port, with all chains that share
// it.
type OutboundListenerKey struct {
	// Mesh, Detection, Filters, HTTP10 and DynamicDNS are set only where a chain serves HTTP.
	Mesh       *value.HTTPSettings
	Detection  value.Duration
	Filters    value.Filters
	HTTP10     bool
	DynamicDNS DynamicDNS

	// Bind is the address that names the listener, Also further ones, joined by commas.
	Bind, Also string
	Port       int
	// BindToPort tells Envoy to open the port. Without it the listener gets connections from virtualOutbound, which picks
	// it by their destination.
	BindToPort bool

	Chains *ChainList
	// Fallthrough is the cluster that gets the connections which no chain matches; empty where a chain matches all.
	Fallthrough string
}

// ChainList is a list of chains. Interned: equal lists are one pointer.
type ChainList struct {
	Chain ChainKey
	Next  *ChainList
}

// Names of the listeners that get what is intercepted.
const (
	VirtualOutboundName = "virtualOutbound"
	VirtualInboundName  = "virtualInbound"
)

// Name returns the name of the listener.
func (k OutboundListenerKey) Name() string { return ListenerName(k.Bind, k.Port) }

// ListenerName returns the name of the listener at an address and port.
func ListenerName(bind string, port int) string { return bind + "_" + strconv.Itoa(port) }

// OutboundListener makes an outbound listener.
func OutboundListener(k OutboundListenerKey) *listenerpb.Listener {
	l := &listenerpb.Listener{
		Name:                             k.Name(),
		Address:                          SocketAddress(k.Bind, uint32(k.Port)),
		TrafficDirection:                 corev3.TrafficDirection_OUTBOUND,
		ContinueOnListenerFiltersTimeout: true,
		ListenerFiltersTimeout:           durationpb.New(0),
	}
	if k.Also != "" {
		for a := range strings.SplitSeq(k.Also, ",") {
			l.AdditionalAddresses = append(l.AdditionalAddresses,
				&listenerpb.AdditionalAddress{Address: SocketAddress(a, uint32(k.Port))})
		}
	}
	if k.BindToPort {
		l.MaxConnectionsToAcceptPerSocketEvent = wrapperspb.UInt32(1)
	} else {
		l.BindToPort = wrapperspb.Bool(false)
	}
	sni, sniffed := false, false
	for c := k.Chains; c != nil; c = c.Next {
		sni, sniffed = sni || c.Chain.ServerNames != "", sniffed || c.Chain.Sniffed
		chain := outboundChain(k, c.Chain)
		if c.Chain.MatchesAll() && (k.Chains.Next != nil) {
			l.DefaultFilterChain = chain // as the last resort, whatever else a connection half matches
		} else {
			l.FilterChains = append(l.FilterChains, chain)
		}
	}
	if k.Fallthrough != "" {
		l.DefaultFilterChain = &listenerpb.FilterChain{
			Name: "PassthroughFilterChain", FilterChainMatch: &listenerpb.FilterChainMatch{},
			Filters: bytesTo(k.Fallthrough),
		}
	}
	if sni {
		l.ListenerFilters = append(l.ListenerFilters, TLSInspector(nil))
	}
	if sniffed {
		l.ListenerFilters = append(l.ListenerFilters, httpInspector(nil))
		l.ListenerFiltersTimeout = detectionTimeout(k.Detection)
	}
	return l
}

// detectionTimeout returns how long an inspector may wait for bytes of the client; 0 is without limit.
func detectionTimeout(d value.Duration) *durationpb.Duration {
	return &durationpb.Duration{Seconds: d.Seconds, Nanos: d.Nanos}
}

// VirtualOutboundKey is what the listener that catches all outbound connections is made from.
type VirtualOutboundKey struct {
	Bind string
	Port int
	// Transparent is for interception by TPROXY.
	Transparent bool
	// Fallthrough is the cluster of connections that no other listener takes.
	Fallthrough string
	// HTTP is what becomes of HTTP requests in such connections, where something else does; zero otherwise.
	HTTP VirtualHTTPKey
}

// VirtualHTTPKey is what the HTTP chain of virtualOutbound is made from.
type VirtualHTTPKey struct {
	Mesh      *value.HTTPSettings
	Detection value.Duration
	// CountAttempts adds the header x-envoy-attempt-count to requests.
	CountAttempts bool
	Filters       value.Filters
	HTTP10        bool
	DynamicDNS    DynamicDNS
	// Bytes are the ports, in order and joined by spaces, at which services speak something else than HTTP: connections
	// to them are not looked into, for that would wait for the client where the server speaks first.
	Bytes string
}

// VirtualOutbound makes the listener that catches all outbound connections and hands each over to the listener at its
// destination. Those made to its own port end, for they would come back for ever.
func VirtualOutbound(k VirtualOutboundKey) *listenerpb.Listener {
	l := &listenerpb.Listener{
		Name:             VirtualOutboundName,
		Address:          SocketAddress(k.Bind, uint32(k.Port)),
		UseOriginalDst:   wrapperspb.Bool(true),
		TrafficDirection: corev3.TrafficDirection_OUTBOUND,
		FilterChains: []*listenerpb.FilterChain{
			{
				Name:             "virtualOutbound-blackhole",
				FilterChainMatch: &listenerpb.FilterChainMatch{DestinationPort: wrapperspb.UInt32(uint32(k.Port))},
				Filters:          bytesTo("BlackHoleCluster"),
			},
			{Name: "virtualOutbound-catchall-tcp", Filters: bytesTo(k.Fallthrough)},
		},
		MaxConnectionsToAcceptPerSocketEvent: wrapperspb.UInt32(1),
	}
	if k.Transparent {
		l.Transparent = wrapperspb.Bool(true)
	}
	if k.HTTP.DynamicDNS.Served {
		addVirtualHTTP(l, k.HTTP)
	}
	return l
}

// SocketAddress returns a TCP address, or a "unix://" path with port 0.
func SocketAddress(host string, port uint32) *corev3.Address {
	if path, ok := strings.CutPrefix(host, "unix://"); ok {
		return &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: path}}}
	}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

// TLSInspector reads the server name and the offered protocols of TLS connections, but for those that disabled matches.
func TLSInspector(disabled *listenerpb.ListenerFilterChainMatchPredicate) *listenerpb.ListenerFilter {
	return &listenerpb.ListenerFilter{
		Name: "envoy.filters.listener.tls_inspector", FilterDisabled: disabled,
		ConfigType: &listenerpb.ListenerFilter_TypedConfig{
			TypedConfig: anyOf(&tlsinspectorpb.TlsInspector{InitialReadBufferSize: wrapperspb.UInt32(512)})},
	}
}

// httpInspector finds out whether a connection in clear text is HTTP, but for those that disabled matches.
func httpInspector(disabled *listenerpb.ListenerFilterChainMatchPredicate) *listenerpb.ListenerFilter {
	return &listenerpb.ListenerFilter{
		Name: "envoy.filters.listener.http_inspector", FilterDisabled: disabled,
		ConfigType: &listenerpb.ListenerFilter_TypedConfig{TypedConfig: anyOf(&httpinspectorpb.HttpInspector{})},
	}
}
