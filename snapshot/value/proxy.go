package value

// NodeType is the kind of client, the first part of its node id.
type NodeType uint8

// Node types.
const (
	SidecarProxy NodeType = iota
	Router
	Proxyless // a gRPC client (GENERATOR: grpc)
)

// Filters is the set of extensions that a proxy was built with, of those that not every build of Envoy has: verdicts
// over Node.extensions. A node that lists no extensions is taken for Istio's proxy and has them all.
type Filters uint16

// The extensions: Istio's own filters, and the two halves of Envoy's dynamic forward proxy, which is of use only where
// both are there.
const (
	TCPMetadataExchange Filters = 1 << iota
	HTTPPeerMetadata
	ALPN
	Stats
	ForwardProxyFilter
	ForwardProxyCluster

	IstioFilters        = TCPMetadataExchange | HTTPPeerMetadata | ALPN | Stats // that no upstream Envoy has
	DynamicForwardProxy = ForwardProxyFilter | ForwardProxyCluster
	AllFilters          = IstioFilters | DynamicForwardProxy
)

// ExtensionTypes returns the extensions by the message type of their configuration, which is how a node lists them.
// Names of filters tell nothing.
func ExtensionTypes() map[string]Filters {
	return map[string]Filters{
		"envoy.tcp.metadataexchange.config.MetadataExchange":                  TCPMetadataExchange,
		"io.istio.http.peer_metadata.Config":                                  HTTPPeerMetadata,
		"istio.envoy.config.filter.http.alpn.v2alpha1.FilterConfig":           ALPN,
		"stats.PluginConfig":                                                  Stats,
		"envoy.extensions.filters.http.dynamic_forward_proxy.v3.FilterConfig": ForwardProxyFilter,
		"envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig":    ForwardProxyCluster,
	}
}

// Has reports whether all of want are in f.
func (f Filters) Has(want Filters) bool { return f&want == want }

// Interception is how an application's connections reach its sidecar.
type Interception uint8

// Interception modes.
const (
	Redirect Interception = iota
	TProxy
	NoInterception // NONE: listeners bind real ports
)

// Traits are the facts about a proxy that generators may read, as verdicts. Comparable; part of Keys.
type Traits struct {
	Type         NodeType
	Filters      Filters
	Interception Interception
	// IPv4 and IPv6 are the families of the proxy's own addresses.
	IPv4, IPv6 bool
	HTTP10     bool
	// DNSCapture: the agent beside the proxy answers DNS queries. It is set only of sidecars that can resolve names
	// themselves.
	DNSCapture bool
	// Unprivileged proxies cannot listen on ports below 1024.
	Unprivileged bool
}

// Upstream reports whether the proxy is an upstream Envoy, with its defaults where Istio's bootstrap sets others: it
// has none of Istio's own filters, and is no gRPC client.
func (t Traits) Upstream() bool { return t.Filters&IstioFilters == 0 && t.Type != Proxyless }

// MayBind reports whether the proxy can listen on a port.
func (t Traits) MayBind(port int) bool { return !t.Unprivileged || port >= 1024 }
