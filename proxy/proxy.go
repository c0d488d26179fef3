package proxy

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Peer is what a client has proven of itself.
type Peer struct {
	identity.Peer
	// Unchecked lets the client claim a namespace and a service account that it has not proven to be.
	Unchecked bool
}

// Proxy is a client as the rest of pilotd knows it. Immutable after Accept.
type Proxy struct {
	// ID is the node id, "type~ip~pod.namespace~domain".
	ID string
	// Name and Namespace are the pod's.
	Name, Namespace string
	ClusterID       string
	// Version is the ISTIO_VERSION that the client reports.
	Version string
	// Addresses are the INSTANCE_IPS, or the address in the id; the first is the primary one.
	Addresses []string
	Labels    Labels
	Locality  value.Locality
	// Node is the Kubernetes node (NODE_NAME).
	Node    string
	Network string
	// Account is the SERVICE_ACCOUNT.
	Account string
	// Proven is who the client has proven to be; the zero value if that is nobody.
	Proven identity.Peer
	Traits value.Traits
}

// Accept decides what a client is, from the Node of its first request and what its connection has proven. The id must
// be of the form "type~ip~pod.namespace~domain" with type sidecar or router; GENERATOR: grpc in the metadata makes a
// proxyless client. Accept refuses a Node without an address in the id or in INSTANCE_IPS, and one that is too large:
// these errors wrap ErrNode. One that claims another namespace or service account than its peer has proven to be is
// refused with an error that wraps ErrClaim.
func Accept(n *corev3.Node, peer Peer) (*Proxy, error) {
	if err := checkBounds(n); err != nil {
		return nil, err
	}
	parts := strings.Split(n.GetId(), "~")
	if len(parts) != 4 {
		return nil, fmt.Errorf("%w: id %q: want type~ip~pod.namespace~domain", ErrNode, n.GetId())
	}
	md := n.GetMetadata().GetFields()
	p := &Proxy{
		ID: n.GetId(), ClusterID: text(md, keyCluster), Version: text(md, keyVersion),
		Addresses: addresses(text(md, keyAddresses), parts[1]), Labels: PackLabels(labels(md[keyLabels.String()])),
		Node: text(md, keyName), Network: text(md, keyNetwork), Account: text(md, keyAccount),
		Locality: value.Locality{Region: n.GetLocality().GetRegion(), Zone: n.GetLocality().GetZone(),
			SubZone: n.GetLocality().GetSubZone()},
	}
	pod, ns, _ := strings.Cut(parts[2], ".")
	p.Name, p.Namespace = pod, cmp.Or(text(md, keyNamespace), ns)
	if err := p.prove(peer); err != nil {
		return nil, err
	}
	var err error
	p.Traits, err = traits(n, parts[0], p.Addresses)
	return p, err
}

// prove holds what the proxy claims against what its peer has proven. A service account that it does not name is the
// proven one.
func (p *Proxy) prove(peer Peer) error {
	p.Proven = peer.Peer
	p.Proven.Pod = identity.Pod{} // nothing of a proxy depends on it
	if !peer.Proven() || peer.Unchecked {
		return nil
	}
	who := peer.Identity
	if p.Namespace != who.Namespace || p.Account != "" && p.Account != who.ServiceAccount {
		return fmt.Errorf("%w: the identity %s does not match %s/%s", ErrClaim, who, p.Namespace, p.Account)
	}
	p.Account = who.ServiceAccount
	return nil
}

// addresses returns the comma-separated addresses of INSTANCE_IPS, or else the one in the node id.
func addresses(instanceIPs, inID string) (out []string) {
	for a := range strings.SplitSeq(instanceIPs, ",") {
		if a = strings.TrimSpace(a); a != "" {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return []string{inID}
	}
	return out
}

// traits returns the capabilities and modes of a proxy. kind is the first part of the node id.
func traits(n *corev3.Node, kind string, addresses []string) (t value.Traits, err error) {
	md := n.GetMetadata().GetFields()
	if t.IPv4, t.IPv6 = value.Families(addresses); !t.IPv4 && !t.IPv6 {
		return t, fmt.Errorf("%w: id %q has no IP address and INSTANCE_IPS is %q: want at least one", ErrNode,
			n.GetId(), text(md, keyAddresses))
	}
	switch kind {
	case "sidecar":
	case "router":
		t.Type = value.Router
	default:
		return t, fmt.Errorf("%w: id %q: type %q is not served; want sidecar or router", ErrNode, n.GetId(), kind)
	}
	if text(md, keyGenerator) == "grpc" {
		t.Type = value.Proxyless
	}
	t.Interception = interception(text(md, keyInterception))
	t.HTTP10 = text(md, keyHTTP10) == "1" || text(md, keyHTTP10) == "true"
	if t.Type == value.Router || t.Interception == value.NoInterception { // others bind no port of a service
		t.Unprivileged, _ = strconv.ParseBool(text(md, keyUnprivileged))
	}
	t.Filters = filters(n)
	// Only a sidecar that resolves names by itself can be affected by who answers its DNS queries.
	if t.Type == value.SidecarProxy && t.Filters.Has(value.DynamicForwardProxy) {
		t.DNSCapture = md[keyDNSCapture.String()].GetBoolValue()
		if s := text(md, keyDNSCapture); s != "" {
			t.DNSCapture, _ = strconv.ParseBool(s)
		}
	}
	return t, nil
}

func interception(mode string) value.Interception {
	switch mode {
	case "TPROXY":
		return value.TProxy
	case "NONE":
		return value.NoInterception
	}
	return value.Redirect
}

// filters returns the filters that the proxy was built with: a filter counts when the type of its configuration is
// among the types of an extension. A node that lists no extension is taken for Istio's proxy.
func filters(n *corev3.Node) value.Filters {
	if len(n.GetExtensions()) == 0 {
		return value.AllFilters
	}
	var f value.Filters
	known := value.ExtensionTypes()
	for _, e := range n.GetExtensions() {
		for _, t := range e.GetTypeUrls() {
			f |= known[t]
		}
	}
	return f
}

// labels returns the pairs of the LABELS in the metadata.
func labels(v *structpb.Value) value.Labels {
	out := value.Labels{}
	for k, l := range v.GetStructValue().GetFields() {
		out[k] = l.GetStringValue()
	}
	return out
}
