package gen

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"strings"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// EndpointFilter says which endpoints of a service an assignment has.
type EndpointFilter struct {
	// Port is the name of the service port.
	Port string
	// Subset are labels that the endpoints must have; nil selects all.
	Subset value.Labels
	// Local lets only endpoints on the node Node through.
	Node  string
	Local bool
	// Draining lets endpoints through, too, that shut down and only finish the sessions that they have.
	Draining bool
	// Names lets endpoints through, too, whose address is a DNS name.
	Names bool
}

// port returns the endpoint's port; ok is false if the filter does not let the endpoint through.
func (f *EndpointFilter) port(e *value.Endpoint) (uint32, bool) {
	if f.Local && e.Node != f.Node || e.Health == value.Terminating || e.Health == value.Draining && !f.Draining ||
		!e.Labels.Contains(f.Subset) {
		return 0, false
	}
	if !f.Names && !isAddress(e.Addresses[0]) {
		return 0, false
	}
	for _, p := range e.Ports {
		if p.Name == f.Port {
			return p.Port, p.Port <= math.MaxUint16 && (f.Names || sendable(e.Addresses[0]))
		}
	}
	return 0, false
}

// Select returns the endpoint's port at which the assignment has it; ok is false if it has not.
func (f *EndpointFilter) Select(e *value.Endpoint) (port uint32, ok bool) {
	if len(e.Addresses) == 0 {
		return 0, false
	}
	return f.port(e)
}

// isAddress reports whether a, which is an address, a path or a host name, is not a name: an IPv6 address and a path
// have a colon, which names have not, and an IPv4 address has nothing but digits and dots, which is no name either.
func isAddress(a string) bool {
	ipv4 := true
	for i := 0; i < len(a); i++ {
		switch c := a[i]; {
		case c == ':':
			return true
		case c != '.' && (c < '0' || c > '9'):
			ipv4 = false
		}
	}
	return ipv4 && a != ""
}

const unixPrefix = "unix://"

// maxSocketPath is the longest path of a socket that Envoy takes.
const maxSocketPath = 107

// sendable reports whether Envoy takes an address in an assignment, of which it would refuse all for one that it does
// not: a path that fits, or an IP address without a zone.
func sendable(a string) bool {
	if path, ok := strings.CutPrefix(a, unixPrefix); ok {
		return path != "" && len(path) <= maxSocketPath
	}
	ip, err := netip.ParseAddr(a)
	return err == nil && ip.Zone() == ""
}

// EndpointForm is how the endpoints of an assignment are written.
type EndpointForm struct {
	// MutualTLS marks the endpoints that speak mutual TLS, so that clients use it; not those that, by Peers, take plain
	// text alone.
	MutualTLS bool
	// Peers are the policies of the endpoints' namespace; nil where no endpoint takes plain text alone.
	Peers *value.PeerPolicies
	// External names the namespace that stands for that of the endpoint's workload, of a service outside the mesh; Name
	// and Revision are the canonical ones that such a service gives itself.
	External, Name, Revision string
}

// EndpointFormOf returns how the endpoints of a cluster are written: what its rule says of TLS counts before the
// policies of the endpoints.
func EndpointFormOf(k ClusterKey) EndpointForm {
	tls, svc := endpointTLS(k.Rule, k.Subset, k.Port.Number), k.Service
	f := EndpointForm{MutualTLS: tls == nil || meshTLS(tls)}
	if tls == nil {
		f.Peers = k.Peers
	}
	if !svc.External {
		return f
	}
	f.External = svc.Namespace
	if name, ok := svc.Labels[labelCanonicalName]; ok {
		f.Name, f.Revision = name, svc.Labels[labelCanonicalRevision]
	}
	return f
}

// of returns the form of one endpoint, which says for itself whether it is marked.
func (f EndpointForm) of(e EndpointKey) EndpointForm {
	if f.Peers != nil && f.MutualTLS {
		f.MutualTLS = f.Peers.Of(e.Endpoint.Labels).At(int(e.Port)) != value.Disabled
	}
	f.Peers = nil
	return f
}

// KeepsDraining reports whether sessions of a service stay with endpoints that drain.
func KeepsDraining(svc *value.Service) bool {
	return svc.Labels["istio.io/persistent-session"] != "" || svc.Labels["istio.io/persistent-session-header"] != ""
}

// EndpointFilterOf returns the filter for a port and subset of a service, for a client on a node.
func EndpointFilterOf(svc *value.Service, port string, subset value.Labels, node string) EndpointFilter {
	f := EndpointFilter{Port: port, Subset: subset, Draining: KeepsDraining(svc)}
	if svc.NodeLocal {
		f.Local, f.Node = true, node
	}
	return f
}

// EndpointKey is the whole input of an endpoint but for its metadata.
type EndpointKey struct {
	Endpoint *value.Endpoint
	Port     uint32
}

// LbEndpoint returns an endpoint, without its metadata.
func LbEndpoint(k EndpointKey) *endpointpb.LbEndpoint {
	return &endpointpb.LbEndpoint{
		HostIdentifier: &endpointpb.LbEndpoint_Endpoint{
			Endpoint: &endpointpb.Endpoint{Address: endpointAddress(k.Endpoint.Addresses[0], k.Port)}},
		HealthStatus:        healthStatus(k.Endpoint.Health),
		LoadBalancingWeight: wrapperspb.UInt32(max(1, k.Endpoint.Weight)),
	}
}

func endpointAddress(a string, port uint32) *corepb.Address {
	if path, ok := strings.CutPrefix(a, unixPrefix); ok {
		return &corepb.Address{Address: &corepb.Address_Pipe{Pipe: &corepb.Pipe{Path: path}}}
	}
	return &corepb.Address{Address: &corepb.Address_SocketAddress{SocketAddress: &corepb.SocketAddress{
		Address: a, PortSpecifier: &corepb.SocketAddress_PortValue{PortValue: port}}}}
}

func healthStatus(h value.Health) corepb.HealthStatus {
	switch h {
	case value.Healthy:
		return corepb.HealthStatus_HEALTHY
	case value.Unhealthy:
		return corepb.HealthStatus_UNHEALTHY
	case value.Draining, value.Terminating:
		return corepb.HealthStatus_DRAINING
	}
	return corepb.HealthStatus_UNKNOWN
}

// EndpointMetadataKey is the whole input of an endpoint's metadata, the same for all endpoints of a workload that are
// of one form.
type EndpointMetadataKey struct {
	Identity value.Identity
	Form     EndpointForm
}

// Labels by which a workload says what it is to be called in metrics.
const (
	labelCanonicalName     = "service.istio.io/canonical-name"
	labelCanonicalRevision = "service.istio.io/canonical-revision"
)

// EndpointMetadata returns what is said of an endpoint beside its address: which transport socket it takes, and its
// workload for metrics.
func EndpointMetadata(k EndpointMetadataKey) *corepb.Metadata {
	id := &k.Identity
	namespace, name, revision := id.Namespace, "", ""
	if k.Form.External != "" {
		namespace = k.Form.External
	}
	if k.Form.Name != "" {
		name, revision = k.Form.Name, k.Form.Revision
	} else {
		name, revision = canonical(id)
	}
	if revision == "latest" {
		revision = ""
	}
	workload := strings.Join([]string{id.Workload, namespace, name, revision, id.Cluster}, ";")
	out := map[string]*structpb.Struct{"istio": textStruct("workload", workload)}
	if k.Form.MutualTLS && id.TLSMode == "istio" {
		out["envoy.transport_socket_match"] = textStruct("tlsMode", "istio")
	}
	return &corepb.Metadata{FilterMetadata: out}
}

func textStruct(k, v string) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{k: structpb.NewStringValue(v)}}
}

// canonical returns the name and revision of a workload in metrics: by Istio's labels, else by usual ones, else its own
// name.
func canonical(id *value.Identity) (name, revision string) {
	return cmp.Or(labelIn(id.LabelsKey, labelCanonicalName), labelIn(id.LabelsKey, "app.kubernetes.io/name"),
			labelIn(id.LabelsKey, "app"), id.Workload),
		cmp.Or(labelIn(id.LabelsKey, labelCanonicalRevision), labelIn(id.LabelsKey, "app.kubernetes.io/version"),
			labelIn(id.LabelsKey, "version"))
}

// labelIn returns a label out of a value.LabelsKey.
func labelIn(labels, k string) string {
	for l := range strings.SplitSeq(labels, ",") {
		if v, ok := strings.CutPrefix(l, k); ok && strings.HasPrefix(v, "=") {
			return v[1:]
		}
	}
	return ""
}

// LocalityHeader returns the locality of a group with its weight and priority, to be followed by its endpoints.
func LocalityHeader(g LocalityGroup) *endpointpb.LocalityLbEndpoints {
	return &endpointpb.LocalityLbEndpoints{
		Locality: &corepb.Locality{Region: g.Locality.Region, Zone: g.Locality.Zone,
			SubZone: g.Locality.SubZone},
		LoadBalancingWeight: wrapperspb.UInt32(g.Weight),
		Priority:            g.Priority,
	}
}

// AddWeight returns the sum of two weights, or the greatest there is.
func AddWeight(a, b uint32) uint32 {
	if math.MaxUint32-b < a {
		return math.MaxUint32
	}
	return a + b
}

// inlineEndpoints returns the endpoints that the cluster k carries, with those labels.
func inlineEndpoints(k ClusterKey, subset value.Labels) (out []EndpointKey) {
	if k.Projection == nil {
		return nil
	}
	f := EndpointFilterOf(k.Service, k.Port.Name, subset, "")
	f.Names, f.Local = true, false
	for _, e := range k.Projection.Inline {
		if port, ok := f.Select(e); ok {
			out = append(out, EndpointKey{e, port})
		}
	}
	return out
}

// inlineAssignment returns the endpoints that the cluster k carries, by locality.
func inlineAssignment(k ClusterKey) []*endpointpb.LocalityLbEndpoints {
	form := EndpointFormOf(k)
	members := map[value.Locality][]*endpointpb.LbEndpoint{}
	var groups []*LocalityGroup
	for _, e := range inlineEndpoints(k, k.Rule.SubsetLabels(k.Subset)) {
		lb := LbEndpoint(e)
		lb.Metadata = EndpointMetadata(EndpointMetadataKey{e.Endpoint.Identity.Value(), form.of(e)})
		at := e.Endpoint.Locality
		i := slices.IndexFunc(groups, func(g *LocalityGroup) bool { return g.Locality == at })
		if i < 0 {
			i, groups = len(groups), append(groups, &LocalityGroup{Locality: at})
		}
		groups[i].Weight = AddWeight(groups[i].Weight, lb.GetLoadBalancingWeight().GetValue())
		members[at] = append(members[at], lb)
	}
	slices.SortFunc(groups, func(a, b *LocalityGroup) int {
		return cmp.Compare(a.Locality.String(),
			b.Locality.String())
	})
	k.Order.Rank(groups)
	out := make([]*endpointpb.LocalityLbEndpoints, 0, len(groups))
	for _, g := range groups {
		l := LocalityHeader(*g)
		if !g.LeftOut {
			l.LbEndpoints = members[g.Locality]
		}
		out = append(out, l)
	}
	return out
}
