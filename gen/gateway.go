package gen

import (
	"strings"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	proxyprotocolpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/proxy_protocol/v3"
	hcmpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// GatewayListenerKey is what a gateway's listener depends on besides its filter chains.
type GatewayListenerKey struct {
	Bind string
	Port int
	// TLS is whether any chain looks at TLS.
	TLS bool
	// ProxyProtocol is whether what stands before the gateway tells the client's address first.
	ProxyProtocol bool
}

// Name returns the name of the listener.
func (k GatewayListenerKey) Name() string { return ListenerName(k.Bind, k.Port) }

// GatewayHeader makes the listener without its filter chains, which are further encoded fields.
func GatewayHeader(k GatewayListenerKey) *listenerpb.Listener {
	l := &listenerpb.Listener{
		Name: k.Name(), Address: SocketAddress(k.Bind, uint32(k.Port)),
		TrafficDirection:                     corepb.TrafficDirection_OUTBOUND,
		MaxConnectionsToAcceptPerSocketEvent: wrapperspb.UInt32(1),
	}
	if k.ProxyProtocol {
		l.ListenerFilters = append(l.ListenerFilters, &listenerpb.ListenerFilter{
			Name:       "envoy.filters.listener.proxy_protocol",
			ConfigType: &listenerpb.ListenerFilter_TypedConfig{TypedConfig: anyOf(&proxyprotocolpb.ProxyProtocol{})},
		})
	}
	if k.TLS {
		l.ListenerFilters = append(l.ListenerFilters, TLSInspector(nil))
	}
	return l
}

// GatewayChainKey is one filter chain of a gateway's listener: HTTP where RouteName is set, bytes otherwise.
type GatewayChainKey struct {
	// Gateway is the Gateway whose server wants it; zero for the chain of all servers of plain HTTP. VirtualService is the
	// VirtualService that leads a chain of bytes on.
	Gateway, VirtualService value.Meta
	// Sharers are the Gateways whose servers of plain HTTP share the chain, as SharersOf joins them. Only blame depends
	// on them: the chain is the same whoever they are.
	Sharers string
	// ServerNames are the SNI names that it takes, as ServerNames joins them; empty takes all.
	ServerNames string
	// TLS are the settings by which it terminates TLS; nil where it does not.
	TLS *value.ServerTLS

	// Servers is set where the chain terminates TLS, and Mesh where it serves HTTP.
	Servers *value.ServerSettings
	Mesh    *value.HTTPSettings
	// Filters are the proxy's own that a chain may have, where it serves HTTP or ends mutual TLS.
	Filters value.Filters
	// The rest of an HTTP chain. ServerName, where the user gave the server one, names the statistics; else StatPrefix
	// does.
	HTTP10     bool
	GRPCWeb    bool
	RouteName  string
	StatPrefix string
	ServerName string

	// TCP is what a chain of bytes forwards to.
	TCP TCPProxyKey

	// Access says which requests and connections the gateway takes.
	Access AccessKey
}

// MaxSharers is how many of the Gateways that share a chain are blamed for it at most.
const MaxSharers = 64

// SharersOf joins the names of Gateways, each "namespace/name".
func SharersOf(gateways []string) string { return strings.Join(gateways, "\n") }

// GatewayChain makes a filter chain.
func GatewayChain(k GatewayChainKey) *listenerpb.FilterChain {
	out := &listenerpb.FilterChain{TransportSocketConnectTimeout: ConnectTimeout(),
		FilterChainMatch: outboundMatch(ChainKey{ServerNames: k.ServerNames})}
	if k.TLS != nil {
		out.TransportSocket = transportSocket("envoy.transport_sockets.tls",
			serverTLS(k.TLS, k.Servers, k.RouteName == ""))
	}
	if k.RouteName == "" {
		out.Filters = networkFilters(filterChain{filters: k.Filters, tcp: k.TCP, access: k.Access,
			meetsPeers: k.TLS != nil && k.TLS.Mode == value.MeshTLS})
		return out
	}
	m := HTTPConnectionManager(HTTPConnectionManagerKey{
		Mesh: k.Mesh, Class: GatewayListener, Filters: k.Filters, HTTP10: k.HTTP10, GRPCWeb: k.GRPCWeb,
		StatPrefix: k.StatPrefix, RouteName: k.RouteName, Access: k.Access,
	})
	setTopology(m, k.Mesh)
	if k.ServerName != "" {
		m.StatPrefix = k.ServerName
	}
	out.Filters = networkFilters(filterChain{filters: k.Filters, http: m})
	return out
}

// setTopology sets how far what stands before the gateway is trusted.
func setTopology(m *hcmpb.HttpConnectionManager, s *value.HTTPSettings) {
	m.XffNumTrustedHops = s.TrustedProxies
	f := s.GatewayCert
	if f == value.ForwardUnset {
		return
	}
	m.ForwardClientCertDetails = forwardCert(f)
	if f != value.AppendForward && f != value.SanitizeSet {
		m.SetCurrentClientCertDetails = nil
	}
}
