package gen

//lint:file-ignore SA1019 users still set the deprecated fields

import (
	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
)

// balance sets how requests are spread over endpoints and localities.
func (b *clusterBuilder) balance(k ClusterKey, p TrafficPolicy) {
	c := b.c
	// Unready endpoints are sent too, as unhealthy; without a minimum the panic mode, which would use them, is off.
	c.CommonLbConfig.HealthyPanicThreshold = &typepb.Percent{Value: float64(max(0, p.Outlier.GetMinHealthPercent()))}
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
	b.algorithm(p.Balancer)
	b.hash(p.Balancer.GetConsistentHash())
}

// weighsLocalities reports whether localities are weighed: only where settings need it, for it changes what a policy
// such as least request does.
func weighsLocalities(s LocalityRule) bool {
	return s.Failover && (s.Settings.GetFailover() != nil || s.Settings.GetFailoverPriority() != nil) ||
		s.Settings.GetDistribute() != nil
}

func (b *clusterBuilder) algorithm(lb *networking.LoadBalancerSettings) {
	start := slowStart(lb)
	switch lb.GetSimple() {
	case networking.LoadBalancerSettings_RANDOM:
		b.c.LbPolicy = clusterpb.Cluster_RANDOM
	case networking.LoadBalancerSettings_ROUND_ROBIN:
		b.c.LbPolicy = clusterpb.Cluster_ROUND_ROBIN
		if start != nil {
			b.c.LbConfig = &clusterpb.Cluster_RoundRobinLbConfig_{RoundRobinLbConfig: &clusterpb.Cluster_RoundRobinLbConfig{SlowStartConfig: start}}
		}
	default:
		b.c.LbPolicy = clusterpb.Cluster_LEAST_REQUEST
		if start != nil {
			b.c.LbConfig = &clusterpb.Cluster_LeastRequestLbConfig_{LeastRequestLbConfig: &clusterpb.Cluster_LeastRequestLbConfig{SlowStartConfig: start}}
		}
	}
}

// slowStart is how new endpoints come into use, or nil for at once.
func slowStart(lb *networking.LoadBalancerSettings) *clusterpb.Cluster_SlowStartConfig {
	w := lb.GetWarmup()
	if w == nil {
		return slowStartFor(lb.GetWarmupDurationSecs())
	}
	aggression, least := 1.0, 10.0
	if w.GetAggression() != nil {
		aggression = w.GetAggression().GetValue()
	}
	if w.GetMinimumPercent() != nil {
		least = w.GetMinimumPercent().GetValue()
	}
	out := slowStartFor(w.GetDuration())
	if out == nil {
		out = &clusterpb.Cluster_SlowStartConfig{}
	}
	// Envoy wants a runtime key; this one is nobody's.
	out.Aggression = &corepb.RuntimeDouble{DefaultValue: aggression, RuntimeKey: "("}
	out.MinWeightPercent = &typepb.Percent{Value: least}
	return out
}

func slowStartFor(d *durationpb.Duration) *clusterpb.Cluster_SlowStartConfig {
	if d == nil {
		return nil
	}
	return &clusterpb.Cluster_SlowStartConfig{SlowStartWindow: d}
}

// hash sets consistent hashing; what is hashed is for routes and listeners to say.
func (b *clusterBuilder) hash(h *networking.LoadBalancerSettings_ConsistentHashLB) {
	ring := func(size uint64) {
		b.c.LbPolicy = clusterpb.Cluster_RING_HASH
		if size != 0 {
			b.c.LbConfig = &clusterpb.Cluster_RingHashLbConfig_{RingHashLbConfig: &clusterpb.Cluster_RingHashLbConfig{MinimumRingSize: wrapperspb.UInt64(size)}}
		}
	}
	switch {
	case h == nil:
	case h.GetMaglev() != nil:
		b.c.LbPolicy = clusterpb.Cluster_MAGLEV
		if size := h.GetMaglev().GetTableSize(); size != 0 {
			b.c.LbConfig = &clusterpb.Cluster_MaglevLbConfig_{MaglevLbConfig: &clusterpb.Cluster_MaglevLbConfig{TableSize: wrapperspb.UInt64(size)}}
		}
	case h.GetRingHash() != nil:
		ring(h.GetRingHash().GetMinimumRingSize())
	case h.GetMinimumRingSize() != 0:
		ring(h.GetMinimumRingSize())
	default:
		ring(1024)
	}
}

// outlier sets when an endpoint is put aside. Ejection by success rate is off: it surprises where endpoints are few.
func (b *clusterBuilder) outlier(o *networking.OutlierDetection) {
	if o == nil {
		return
	}
	out := &clusterpb.OutlierDetection{EnforcingSuccessRate: wrapperspb.UInt32(0), Interval: o.GetInterval(),
		BaseEjectionTime: o.GetBaseEjectionTime()}
	if v := o.GetConsecutive_5XxErrors(); v != nil {
		out.Consecutive_5Xx, out.EnforcingConsecutive_5Xx = wrapperspb.UInt32(v.GetValue()), enforced(v)
	}
	if v := o.GetConsecutiveGatewayErrors(); v != nil {
		out.ConsecutiveGatewayFailure, out.EnforcingConsecutiveGatewayFailure = wrapperspb.UInt32(v.GetValue()),
			enforced(v)
	}
	if o.GetMaxEjectionPercent() > 0 {
		out.MaxEjectionPercent = wrapperspb.UInt32(uint32(o.GetMaxEjectionPercent()))
	}
	if o.GetSplitExternalLocalOriginErrors() {
		out.SplitExternalLocalOriginErrors = true
		out.EnforcingLocalOriginSuccessRate = wrapperspb.UInt32(0)
		if v := o.GetConsecutiveLocalOriginFailures(); v.GetValue() > 0 {
			out.ConsecutiveLocalOriginFailure, out.EnforcingConsecutiveLocalOriginFailure = wrapperspb.UInt32(v.GetValue()), enforced(v)
		}
	}
	b.c.OutlierDetection = out
}

// enforced is the percentage of ejections by a limit that are carried out: a limit of zero is off.
func enforced(limit *wrapperspb.UInt32Value) *wrapperspb.UInt32Value {
	if limit.GetValue() == 0 {
		return wrapperspb.UInt32(0)
	}
	return wrapperspb.UInt32(100)
}
