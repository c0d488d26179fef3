package gen

import (
	"net/netip"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// ChainKey is one filter chain of an outbound listener: which connections it takes, and what it does with them.
type ChainKey struct {
	// ServerNames are the SNI names that it takes, and Prefixes the destination ranges, each sorted and joined by
	// commas; empty takes all.
	ServerNames, Prefixes string
	// Sniffed takes only what the inspector finds to be HTTP in clear text.
	Sniffed bool

	// RouteName is the RouteConfiguration of an HTTP chain, whose port is declared as gRPC-Web or not; empty in a TCP
	// chain.
	RouteName string
	GRPCWeb   bool
	// TCP is what a TCP chain forwards to.
	TCP TCPProxyKey

	// VirtualService is the one that made the chain, for telemetry; zero for a default.
	VirtualService value.Meta
	// Defined is the object that defines the service whose port it is; zero in a chain of all HTTP services.
	Defined value.ObjectKey
}

// MatchesAll reports whether the chain takes every connection.
func (k ChainKey) MatchesAll() bool { return k.ServerNames == "" && k.Prefixes == "" && !k.Sniffed }

// SameMatch reports whether k and o take the same connections, so that only one of them can be in a listener.
func (k ChainKey) SameMatch(o ChainKey) bool {
	return k.ServerNames == o.ServerNames && k.Prefixes == o.Prefixes && k.Sniffed == o.Sniffed
}

// ServerNames joins names into the form that a ChainKey holds; "*" among them means all.
func ServerNames(names []string) string {
	if slices.Contains(names, "*") {
		return ""
	}
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), ",")
}

// Prefixes joins addresses and ranges into the form that a ChainKey holds, with host bits cleared. What is no range is
// left out.
func Prefixes(ranges []string) string {
	var out []string
	for _, r := range ranges {
		p, err := netip.ParsePrefix(r)
		if a, e := netip.ParseAddr(r); e == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err == nil && p.Addr() != netip.IPv4Unspecified() {
			out = append(out, p.Masked().String())
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ",")
}

// outboundMatch returns the criteria of a chain; nil for one that takes all.
func outboundMatch(k ChainKey) *listenerpb.FilterChainMatch {
	if k.MatchesAll() {
		return nil
	}
	m := &listenerpb.FilterChainMatch{}
	if k.Sniffed {
		m.ApplicationProtocols, m.TransportProtocol = plaintextHTTP(), "raw_buffer"
	}
	if k.ServerNames != "" {
		m.ServerNames = strings.Split(k.ServerNames, ",")
	}
	if k.Prefixes != "" {
		for r := range strings.SplitSeq(k.Prefixes, ",") {
			p := netip.MustParsePrefix(r)
			m.PrefixRanges = append(m.PrefixRanges, &corev3.CidrRange{AddressPrefix: p.Addr().String(),
				PrefixLen: wrapperspb.UInt32(uint32(p.Bits()))})
		}
	}
	return m
}

// plaintextHTTP returns the protocols that the HTTP inspector reports. HTTP/1.0 is not among them: it passes as bytes.
func plaintextHTTP() []string { return []string{"http/1.1", "h2c"} }

// outboundChain returns one chain of the listener of k.
func outboundChain(k OutboundListenerKey, c ChainKey) *listenerpb.FilterChain {
	chain := &listenerpb.FilterChain{FilterChainMatch: outboundMatch(c),
		TransportSocketConnectTimeout: ConnectTimeout()}
	if c.VirtualService != (value.Meta{}) {
		chain.Metadata = ConfigMetadata(c.VirtualService, "virtual-service")
	}
	if c.RouteName == "" {
		chain.Filters = networkFilters(filterChain{tcp: c.TCP})
		return chain
	}
	chain.Filters = networkFilters(filterChain{filters: k.Filters, http: HTTPConnectionManager(HTTPConnectionManagerKey{
		Mesh: k.Mesh, Class: SidecarOutbound, Filters: k.Filters, HTTP10: k.HTTP10, DynamicDNS: k.DynamicDNS,
		GRPCWeb:    c.GRPCWeb,
		StatPrefix: "outbound_" + k.Name(), RouteName: c.RouteName,
	})})
	return chain
}

// ConnectTimeout returns how long a client may take for its TLS handshake, in outbound and gateway chains.
func ConnectTimeout() *durationpb.Duration { return &durationpb.Duration{Seconds: 15} }
