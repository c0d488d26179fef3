package plan

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// ErrNode tells that a client's Node cannot be understood; the wrapping error says what was expected.
var ErrNode = errors.New("invalid node")

// Proxy is what a client says about itself in its Node, parsed. Immutable after ParseNode.
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
	Labels    NodeLabels
	Locality  value.Locality
	// Node is the Kubernetes node (NODE_NAME).
	Node    string
	Network string
	// Account is the SERVICE_ACCOUNT.
	Account string
	Traits  value.Traits
}

// ParseNode reads the Node of a client's first request. The id must be of the form "type~ip~pod.namespace~domain" with
// type sidecar or router; GENERATOR: grpc in the metadata makes a proxyless client. Without an address in the id or in
// INSTANCE_IPS it is refused.
func ParseNode(n *corev3.Node) (*Proxy, error) {
	if err := boundNode(n); err != nil {
		return nil, err
	}
	parts := strings.Split(n.GetId(), "~")
	if len(parts) != 4 {
		return nil, fmt.Errorf("%w: id %q: want type~ip~pod.namespace~domain", ErrNode, n.GetId())
	}
	md := n.GetMetadata().GetFields()
	p := &Proxy{
		ID: n.GetId(), Namespace: text(md, nodeNamespace), ClusterID: text(md, nodeCluster),
		Version: text(md, nodeVersion),
		Labels:  PackLabels(labels(md[nodeLabels.String()])), Node: text(md, nodeName), Network: text(md, nodeNetwork),
		Account: text(md, nodeAccount),
		Locality: value.Locality{Region: n.GetLocality().GetRegion(), Zone: n.GetLocality().GetZone(),
			SubZone: n.GetLocality().GetSubZone()},
	}
	pod, ns, _ := strings.Cut(parts[2], ".")
	p.Name = pod
	if p.Namespace == "" {
		p.Namespace = ns
	}
	for a := range strings.SplitSeq(text(md, nodeAddresses), ",") {
		if a = strings.TrimSpace(a); a != "" {
			p.Addresses = append(p.Addresses, a)
		}
	}
	if len(p.Addresses) == 0 {
		p.Addresses = []string{parts[1]}
	}
	t := &p.Traits
	if t.IPv4, t.IPv6 = families(p.Addresses); !t.IPv4 && !t.IPv6 {
		return nil, fmt.Errorf("%w: id %q has no IP address and INSTANCE_IPS is %q: want at least one", ErrNode,
			n.GetId(), text(md, nodeAddresses))
	}
	switch parts[0] {
	case "sidecar":
	case "router":
		t.Type = value.Router
	default:
		return nil, fmt.Errorf("%w: id %q: type %q is not served; want sidecar or router", ErrNode, n.GetId(), parts[0])
	}
	if text(md, nodeGenerator) == "grpc" {
		t.Type = value.Proxyless
	}
	t.Interception = interception(text(md, nodeInterception))
	t.HTTP10 = text(md, nodeHTTP10) == "1" || text(md, nodeHTTP10) == "true"
	if t.Type == value.Router || t.Interception == value.NoInterception { // others bind no port of a service
		t.Unprivileged, _ = strconv.ParseBool(text(md, nodeUnprivileged))
	}
	t.Filters = filters(n)
	// no others resolve names of their own accord
	if t.Type == value.SidecarProxy && t.Filters.Has(value.DynamicForwardProxy) {
		t.DNSCapture = md[nodeDNSCapture.String()].GetBoolValue()
		if s := text(md, nodeDNSCapture); s != "" {
			t.DNSCapture, _ = strconv.ParseBool(s)
		}
	}
	return p, nil
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

// filters are the verdicts over the extensions that the proxy was built with: a filter counts when its configuration's
// type is among an extension's. A node that lists none is taken for Istio's proxy.
func filters(n *corev3.Node) value.Filters {
	if len(n.GetExtensions()) == 0 {
		return value.AllFilters
	}
	var f value.Filters
	known := nodeFilters()
	for _, e := range n.GetExtensions() {
		for _, t := range e.GetTypeUrls() {
			f |= known[t]
		}
	}
	return f
}

func text(md map[string]*structpb.Value, k nodeKey) string { return md[k.String()].GetStringValue() }

func labels(v *structpb.Value) value.Labels {
	out := value.Labels{}
	for k, l := range v.GetStructValue().GetFields() {
		out[k] = l.GetStringValue()
	}
	return out
}
