package gen

import (
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// InboundChainsKey is what the filter chains of one port of a workload are made from, in virtualInbound or in a
// listener of their own.
type InboundChainsKey struct {
	Mesh    *value.HTTPSettings
	Peers   *value.PeerSettings
	Filters value.Filters
	HTTP10  bool
	// Mode is what the port asks of its clients, Policy the object that says so; zero if none does.
	Mode   value.MTLSMode
	Policy value.ObjectKey
	// TLS is how the port terminates TLS itself, with Servers for what it leaves open; nil if it does not. It goes with
	// mode Disabled alone.
	TLS     *value.ServerTLS
	Servers *value.ServerSettings
	// Access says which requests and connections the port takes.
	Access AccessKey

	// Bind and Target name the chains; Target is the workload's own port. Undeclared are those of a port that nobody
	// declares, or with Target 0 of all such ports.
	Bind       string
	Target     int
	Undeclared bool
	// Own is the port of virtualInbound itself, in the chains for all ports that nobody declares; 0 in others.
	Own      int
	Protocol value.Protocol
	// Host and Port tell the service in telemetry.
	Host string
	Port int
	// StatPrefix names the statistics of chains of bytes; where it is empty the name of the cluster does.
	StatPrefix string
	// Sidecar is the Sidecar object that declares the port; zero for a service's.
	Sidecar value.Meta
	// Defined is the object that defines the service; zero where a Sidecar object declares the port.
	Defined value.ObjectKey
}

// inboundMatch is one of the kinds of connections that a port may get.
type inboundMatch struct {
	alpn      []string
	transport string
	http      bool // the connections carry HTTP, inside of TLS where there is TLS
	mtls      bool // the proxy terminates the mesh's mutual TLS
	ownTLS    bool // the proxy terminates the TLS that a Sidecar object asks for
}

const (
	tlsTransport = "tls"
	rawTransport = "raw_buffer"
)

// Protocols that sidecars offer each other in their handshakes: of sniffed HTTP, of other bytes, of either.
func mtlsHTTP() []string { return []string{"istio-http/1.0", "istio-http/1.1", "istio-h2"} }
func mtlsTCP() []string  { return []string{"istio-peer-exchange", "istio"} }
func mtlsAny() []string  { return append(mtlsTCP(), mtlsHTTP()...) }

// inboundMatches returns the connections that the chains of k take, each with a chain of its own.
func inboundMatches(k InboundChainsKey) []inboundMatch {
	switch {
	case k.TLS != nil:
		return []inboundMatch{{transport: tlsTransport, http: k.Protocol.IsHTTP(), ownTLS: true}}
	case k.Protocol == value.Auto:
		return sniffedMatches(k.Mode)
	case k.Mode == value.Strict:
		return []inboundMatch{{transport: tlsTransport, http: k.Protocol.IsHTTP(), mtls: true}}
	case k.Mode == value.Disabled:
		return []inboundMatch{{transport: rawTransport, http: k.Protocol.IsHTTP()}}
	}
	out := []inboundMatch{
		{alpn: mtlsAny(), transport: tlsTransport, http: k.Protocol.IsHTTP(), mtls: true},
		{transport: rawTransport, http: k.Protocol.IsHTTP()},
	}
	if !k.Protocol.IsHTTP() {
		out = append(out, inboundMatch{transport: tlsTransport}) // the application's own TLS
	}
	return out
}

// sniffedMatches returns the connections to a port of which nobody says what it speaks.
func sniffedMatches(mode value.MTLSMode) []inboundMatch {
	switch mode {
	case value.Strict:
		return []inboundMatch{
			{alpn: mtlsHTTP(), transport: tlsTransport, http: true, mtls: true},
			{transport: tlsTransport, mtls: true},
		}
	case value.Disabled:
		return []inboundMatch{
			{alpn: plaintextHTTP(), transport: rawTransport, http: true},
			{transport: rawTransport},
		}
	}
	return []inboundMatch{
		{alpn: mtlsHTTP(), transport: tlsTransport, http: true, mtls: true},
		{alpn: plaintextHTTP(), transport: rawTransport, http: true},
		{alpn: mtlsTCP(), transport: tlsTransport, mtls: true},
		{transport: rawTransport},
		{transport: tlsTransport},
	}
}

// InboundChains returns the filter chains of one port.
func InboundChains(k InboundChainsKey) []*listenerpb.FilterChain {
	var out []*listenerpb.FilterChain
	for _, m := range inboundMatches(k) {
		chain := &listenerpb.FilterChain{
			Name: k.names().chain(m.http),
			FilterChainMatch: &listenerpb.FilterChainMatch{
				ApplicationProtocols: m.alpn, TransportProtocol: m.transport,
			},
			Filters: inboundFilters(k, m.http),
		}
		if k.Target != 0 {
			chain.FilterChainMatch.DestinationPort = wrapperspb.UInt32(uint32(k.Target))
		}
		switch {
		case m.mtls:
			chain.TransportSocket = mutualTLS(k, m.http)
		case m.ownTLS:
			chain.TransportSocket = transportSocket("envoy.transport_sockets.tls", serverTLS(k.TLS, k.Servers, !m.http))
		}
		if k.Sidecar != (value.Meta{}) {
			chain.Metadata = ConfigMetadata(k.Sidecar, "sidecar")
		}
		out = append(out, chain)
	}
	return out
}

// InboundChainFields returns the chains as encoded fields of a listener.
func InboundChainFields(chains []*listenerpb.FilterChain) []byte {
	return Marshal(&listenerpb.Listener{FilterChains: chains})
}

// InboundBlackhole returns the chain for connections made to virtualInbound's own port, which would come back for ever.
func InboundBlackhole(port int, filters value.Filters) *listenerpb.FilterChain {
	return &listenerpb.FilterChain{
		Name:             "virtualInbound-blackhole",
		FilterChainMatch: &listenerpb.FilterChainMatch{DestinationPort: wrapperspb.UInt32(uint32(port))},
		Filters:          networkFilters(filterChain{filters: filters, meetsPeers: true, tcp: tcpTo("BlackHoleCluster")}),
	}
}

func inboundFilters(k InboundChainsKey, http bool) []*listenerpb.Filter {
	chain := filterChain{filters: k.Filters, meetsPeers: true, access: k.Access}
	if http {
		chain.http = HTTPConnectionManager(HTTPConnectionManagerKey{
			Mesh: k.Mesh, Class: SidecarInbound, Filters: k.Filters, HTTP10: k.HTTP10, Access: k.Access,
			StatPrefix: k.names().httpStat(),
			GRPCWeb:    k.Protocol == value.GRPCWeb, HTTP2: k.Protocol.IsHTTP2(),
		})
		chain.http.RouteSpecifier = inboundRoutes(k)
	} else {
		chain.tcp = TCPProxyKey{StatPrefix: k.names().tcpStat(), Upstreams: Upstreams(k.names().cluster()),
			Protocol: k.Protocol}
	}
	return networkFilters(chain)
}
