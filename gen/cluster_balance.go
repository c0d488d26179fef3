package gen

import (
	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// balance sets how requests are spread over endpoints and localities.
func (b *clusterBuilder) balance(k ClusterKey, p value.TrafficPolicy) {
	c := b.c
	// Unready endpoints are sent too, as unhealthy; without a minimum the panic mode, which would use them, is off.
	c.CommonLbConfig.HealthyPanicThreshold = &typepb.Percent{}
	if p.Outlier != nil {
		c.CommonLbConfig.HealthyPanicThreshold.Value = float64(p.Outlier.MinHealthPercent)
	}
	if weighsLocalities(LocalityRuleOf(k.Mesh, k.Service, p)) {
		c.CommonLbConfig.LocalityConfigSpecifier = &clusterpb.Cluster_CommonLbConfig_LocalityWeightedLbConfig_{
			LocalityWeightedLbConfig: &clusterpb.Cluster_CommonLbConfig_LocalityWeightedLbConfig{}}
	}
	if passthrough(p.Balancer) {
		c.ClusterDiscoveryType = &clusterpb.Cluster_Type{Type: clusterpb.Cluster_ORIGINAL_DST}
		c.LoadAssignment = nil
	}
	if c.GetType() == clusterpb.Cluster_ORIGINAL_DST {
		c.LbPolicy = clusterpb.Cluster_CLUSTER_PROVIDED
		return
	}
	lb := p.Balancer
	if lb == nil {
		lb = &value.LoadBalancer{}
	}
	b.algorithm(lb)
	b.hash(lb.Hash)
}

// weighsLocalities reports whether localities are weighed: only where settings need it, for it changes what a policy
// such as least request does.
func weighsLocalities(s LocalityRule) bool {
	return s.Settings != nil && (s.Failover && len(s.Settings.Failover)+len(s.Settings.Priority) > 0 ||
		len(s.Settings.Distribute) > 0)
}

func (b *clusterBuilder) algorithm(lb *value.LoadBalancer) {
	start := slowStart(lb.Warmup)
	switch lb.Algorithm {
	case value.Random:
		b.c.LbPolicy = clusterpb.Cluster_RANDOM
	case value.RoundRobin:
		b.c.LbPolicy = clusterpb.Cluster_ROUND_ROBIN
		if start != nil {
			b.c.LbConfig = &clusterpb.Cluster_RoundRobinLbConfig_{
				RoundRobinLbConfig: &clusterpb.Cluster_RoundRobinLbConfig{SlowStartConfig: start}}
		}
	default:
		b.c.LbPolicy = clusterpb.Cluster_LEAST_REQUEST
		if start != nil {
			b.c.LbConfig = &clusterpb.Cluster_LeastRequestLbConfig_{
				LeastRequestLbConfig: &clusterpb.Cluster_LeastRequestLbConfig{SlowStartConfig: start}}
		}
	}
}

// slowStart returns how new endpoints come into use, or nil for at once.
func slowStart(w *value.Warmup) *clusterpb.Cluster_SlowStartConfig {
	if w == nil {
		return nil
	}
	out := &clusterpb.Cluster_SlowStartConfig{SlowStartWindow: duration(w.Window)}
	if w.Gradual {
		// Envoy wants a runtime key; this one is nobody's.
		out.Aggression = &corepb.RuntimeDouble{DefaultValue: w.Aggression, RuntimeKey: "("}
		out.MinWeightPercent = &typepb.Percent{Value: w.MinPercent}
	}
	return out
}

// hash sets consistent hashing; what is hashed is for routes and listeners to say.
func (b *clusterBuilder) hash(h *value.ConsistentHash) {
	switch {
	case h == nil:
	case h.Maglev:
		b.c.LbPolicy = clusterpb.Cluster_MAGLEV
		if h.Size != 0 {
			b.c.LbConfig = &clusterpb.Cluster_MaglevLbConfig_{
				MaglevLbConfig: &clusterpb.Cluster_MaglevLbConfig{TableSize: wrapperspb.UInt64(h.Size)}}
		}
	default:
		b.c.LbPolicy = clusterpb.Cluster_RING_HASH
		if h.Size != 0 {
			b.c.LbConfig = &clusterpb.Cluster_RingHashLbConfig_{
				RingHashLbConfig: &clusterpb.Cluster_RingHashLbConfig{MinimumRingSize: wrapperspb.UInt64(h.Size)}}
		}
	}
}

// outlier sets when an endpoint is put aside. Ejection by success rate is off: it surprises where endpoints are few.
func (b *clusterBuilder) outlier(o *value.OutlierDetection) {
	if o == nil {
		return
	}
	out := &clusterpb.OutlierDetection{EnforcingSuccessRate: wrapperspb.UInt32(0), Interval: duration(o.Interval),
		BaseEjectionTime: duration(o.BaseEjection)}
	if v := o.Errors; v.Set {
		out.Consecutive_5Xx, out.EnforcingConsecutive_5Xx = wrapperspb.UInt32(v.N), enforced(v)
	}
	if v := o.GatewayErrors; v.Set {
		out.ConsecutiveGatewayFailure, out.EnforcingConsecutiveGatewayFailure = wrapperspb.UInt32(v.N), enforced(v)
	}
	if o.MaxEjectionPercent > 0 {
		out.MaxEjectionPercent = wrapperspb.UInt32(o.MaxEjectionPercent)
	}
	if o.SplitLocal {
		out.SplitExternalLocalOriginErrors = true
		out.EnforcingLocalOriginSuccessRate = wrapperspb.UInt32(0)
		if v := o.LocalFailures; v.N > 0 {
			out.ConsecutiveLocalOriginFailure, out.EnforcingConsecutiveLocalOriginFailure = wrapperspb.UInt32(v.N), enforced(v)
		}
	}
	b.c.OutlierDetection = out
}

// enforced returns the percentage of ejections by a limit that are carried out: a limit of zero is off.
func enforced(limit value.Limit) *wrapperspb.UInt32Value {
	if limit.N == 0 {
		return wrapperspb.UInt32(0)
	}
	return wrapperspb.UInt32(100)
}
