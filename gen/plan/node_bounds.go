package plan

import (
	"fmt"
	"maps"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Bounds of what a client says about itself, and what of it is kept for as long as it is connected. Names of Kubernetes
// objects have at most 253 bytes.
const (
	maxNodeID = 1 << 10
	// maxNodeText is for parts of the locality, and for each text of the metadata.
	maxNodeText = 256
	// maxNodeAddresses is for INSTANCE_IPS, which has all addresses of the pod.
	maxNodeAddresses = 4 << 10
	// maxNodeLabels is how many labels there may be, maxNodeLabelBytes the size of all of them.
	maxNodeLabels     = 256
	maxNodeLabelBytes = 32 << 10
)

// nodeKey is a key of a node's metadata that is read. ParseNode reads no others: see NodeMetadata.
type nodeKey int

const (
	nodeNamespace nodeKey = iota
	nodeCluster
	nodeVersion
	nodeLabels
	nodeName
	nodeNetwork
	nodeAccount
	nodeAddresses
	nodeGenerator
	nodeInterception
	nodeHTTP10
	nodeUnprivileged
	nodeDNSCapture

	numNodeKeys = 13
)

func (k nodeKey) String() string {
	return [numNodeKeys]string{"NAMESPACE", "CLUSTER_ID", "ISTIO_VERSION", "LABELS", "NODE_NAME", "NETWORK",
		"SERVICE_ACCOUNT", "INSTANCE_IPS",
		"GENERATOR", "INTERCEPTION_MODE", "HTTP10", "UNPRIVILEGED_POD", "DNS_CAPTURE"}[k]
}

// NodeMetadata are the keys of a node's metadata that ParseNode reads. What receives nodes need not decode the others.
func NodeMetadata() (out []string) {
	for k := range nodeKey(numNodeKeys) {
		out = append(out, k.String())
	}
	return out
}

// NodeExtensions are the types of a node's extensions that ParseNode looks for.
func NodeExtensions() []string { return slices.Sorted(maps.Keys(nodeFilters())) }

// nodeFilters are the types of the configuration of the extensions that make a difference.
func nodeFilters() map[string]value.Filters {
	return map[string]value.Filters{
		"envoy.tcp.metadataexchange.config.MetadataExchange":                  value.TCPMetadataExchange,
		"io.istio.http.peer_metadata.Config":                                  value.HTTPPeerMetadata,
		"istio.envoy.config.filter.http.alpn.v2alpha1.FilterConfig":           value.ALPN,
		"stats.PluginConfig":                                                  value.Stats,
		"envoy.extensions.filters.http.dynamic_forward_proxy.v3.FilterConfig": value.ForwardProxyFilter,
		"envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig":    value.ForwardProxyCluster,
	}
}

// boundNode refuses a node of which too much would be kept.
func boundNode(n *corev3.Node) error {
	within := func(what string, size, limit int) error {
		if size <= limit {
			return nil
		}
		return fmt.Errorf("%w: %s has %d bytes, the limit is %d", ErrNode, what, size, limit)
	}
	if err := within("id", len(n.GetId()), maxNodeID); err != nil {
		return err
	}
	l := n.GetLocality()
	for _, part := range []struct{ what, text string }{{"locality.region", l.GetRegion()},
		{"locality.zone", l.GetZone()}, {"locality.sub_zone", l.GetSubZone()}} {
		if err := within(part.what, len(part.text), maxNodeText); err != nil {
			return err
		}
	}
	md := n.GetMetadata().GetFields()
	for k := range nodeKey(numNodeKeys) {
		limit := maxNodeText
		if k == nodeAddresses {
			limit = maxNodeAddresses
		}
		if err := within("metadata "+k.String(), len(text(md, k)), limit); err != nil {
			return err
		}
	}
	all := md[nodeLabels.String()].GetStructValue().GetFields()
	if len(all) > maxNodeLabels {
		return fmt.Errorf("%w: metadata LABELS has %d labels, the limit is %d", ErrNode, len(all), maxNodeLabels)
	}
	size := 0
	for k, v := range all {
		size += len(k) + len(v.GetStringValue())
	}
	return within("metadata LABELS", size, maxNodeLabelBytes)
}
