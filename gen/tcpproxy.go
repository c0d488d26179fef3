package gen

import (
	"strconv"
	"strings"

	tcppb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Upstreams are the clusters that a TCP chain forwards to: one name, or "name=weight" for several. A string, so that a
// Key can hold it.
type Upstreams string

// Add returns u with one more cluster and its weight.
func (u Upstreams) Add(cluster string, weight uint32) Upstreams {
	if u != "" {
		u += ","
	}
	return u + Upstreams(cluster+"="+strconv.FormatUint(uint64(weight), 10))
}

// TCPPolicy is what of a DestinationRule the client's listener reads. Comparable.
type TCPPolicy struct {
	// Idle and MaxDuration limit a connection.
	Idle, MaxDuration value.Duration
	// HashSource balances by the client's address.
	HashSource bool
}

// NewTCPPolicy reads a DestinationRule, which may be nil, for connections to a subset, which may be empty.
func NewTCPPolicy(d *value.DestinationRule, subset string) (p TCPPolicy) {
	if d == nil {
		return p
	}
	own := d.Policy.Own()
	if own.Pool != nil {
		p.Idle, p.MaxDuration = own.Pool.TCPIdle, own.Pool.MaxDuration
	}
	lb := own.Balancer
	if s := d.SubsetPolicy(subset).Own().Balancer; s != nil {
		lb = s
	}
	p.HashSource = lb != nil && lb.Hash != nil && lb.Hash.Address
	return p
}

// StatName is what a pattern of the mesh can name in the name of a chain's statistics.
type StatName struct {
	// DomainSuffix is the mesh's, which is left out of names.
	DomainSuffix string
	Service      *value.Service
	Port         *value.Port
	Subset       string
}

// Of returns the name that a pattern gives; otherwise, where there is none.
func (s StatName) Of(pattern, otherwise string) string {
	if pattern == "" {
		return otherwise
	}
	return strings.TrimSuffix(statName(pattern, statOf{s.DomainSuffix, s.Service, s.Port, s.Subset, 0}), ";")
}

// TCPProxyKey is what the filters of a chain of bytes are made from.
type TCPProxyKey struct {
	StatPrefix string
	Upstreams  Upstreams
	// Protocol decides which filter, if any, reads along.
	Protocol value.Protocol
	Policy   TCPPolicy
}

// tcpProxy forwards bytes.
func tcpProxy(k TCPProxyKey) *tcppb.TcpProxy {
	proxy := &tcppb.TcpProxy{StatPrefix: k.StatPrefix}
	proxy.IdleTimeout, proxy.MaxDownstreamConnectionDuration = duration(k.Policy.Idle), duration(k.Policy.MaxDuration)
	if k.Policy.HashSource {
		proxy.HashPolicy = []*typepb.HashPolicy{{
			PolicySpecifier: &typepb.HashPolicy_SourceIp_{SourceIp: &typepb.HashPolicy_SourceIp{}}}}
	}
	setUpstreams(proxy, k.Upstreams)
	return proxy
}

func setUpstreams(proxy *tcppb.TcpProxy, u Upstreams) {
	if !strings.Contains(string(u), "=") {
		proxy.ClusterSpecifier = &tcppb.TcpProxy_Cluster{Cluster: string(u)}
		return
	}
	weighted := &tcppb.TcpProxy_WeightedCluster{}
	for part := range strings.SplitSeq(string(u), ",") {
		name, weight, _ := strings.Cut(part, "=")
		w, _ := strconv.ParseUint(weight, 10, 32)
		weighted.Clusters = append(weighted.Clusters, &tcppb.TcpProxy_WeightedCluster_ClusterWeight{Name: name,
			Weight: uint32(w)})
	}
	proxy.ClusterSpecifier = &tcppb.TcpProxy_WeightedClusters{WeightedClusters: weighted}
}
