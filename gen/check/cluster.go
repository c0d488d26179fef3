package check

import (
	"fmt"
	"math"
	"math/big"
	"time"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

const (
	// maxRing is the largest ring of a consistent hash, and the default of its largest size.
	maxRing = 8 << 20
	// defaultMinRing is the smallest ring where the cluster does not say.
	defaultMinRing = 1024
	// maxMaglev is the largest table of Maglev.
	maxMaglev = 5000011
)

// Cluster returns the rules that a cluster breaks.
func Cluster(c *clusterpb.Cluster) []Fault {
	f := &faults{}
	f.validate(c)
	f.balance(c)
	f.discovery(c)
	for _, d := range []struct {
		path string
		d    time.Duration
		set  bool
	}{
		{"connect_timeout", c.GetConnectTimeout().AsDuration(), c.GetConnectTimeout() != nil},
		//lint:ignore SA1019 this is the field that is sent
		{"dns_refresh_rate", c.GetDnsRefreshRate().AsDuration(), c.GetDnsRefreshRate() != nil},
	} {
		if d.set && d.d < time.Millisecond {
			f.add(d.path, "is %v, it must be at least 1ms", d.d)
		}
	}
	f.outlier(c.GetOutlierDetection())
	return f.list
}

func (f *faults) balance(c *clusterpb.Cluster) {
	if r := c.GetRingHashLbConfig(); r != nil && c.GetLbPolicy() == clusterpb.Cluster_RING_HASH {
		least, most := uint64(defaultMinRing), uint64(maxRing)
		if v := r.GetMinimumRingSize(); v != nil {
			least = v.GetValue()
		}
		if v := r.GetMaximumRingSize(); v != nil {
			most = v.GetValue()
		}
		if least > most {
			f.add("ring_hash_lb_config.minimum_ring_size", "is %d, above the largest size, %d", least, most)
		}
	}
	if v := c.GetMaglevLbConfig().GetTableSize(); v != nil {
		switch n := v.GetValue(); {
		case n > maxMaglev:
			f.add("maglev_lb_config.table_size", "is %d, at most %d are allowed", n, maxMaglev)
		case !big.NewInt(int64(n)).ProbablyPrime(0): // exact below 2⁶⁴
			f.add("maglev_lb_config.table_size", "is %d, it must be a prime number", n)
		}
	}
	provided, original := c.GetLbPolicy() == clusterpb.Cluster_CLUSTER_PROVIDED,
		c.GetType() == clusterpb.Cluster_ORIGINAL_DST
	if provided != original && c.GetClusterType() == nil {
		f.add("lb_policy", "is %v, which does not go with type %v", c.GetLbPolicy(), c.GetType())
	}
}

func (f *faults) discovery(c *clusterpb.Cluster) {
	a := c.GetLoadAssignment()
	switch c.GetType() {
	case clusterpb.Cluster_ORIGINAL_DST, clusterpb.Cluster_EDS:
		if a != nil {
			f.add("load_assignment", "a cluster of type %v has none", c.GetType())
		}
	case clusterpb.Cluster_LOGICAL_DNS:
		if l := a.GetEndpoints(); len(l) != 1 || len(l[0].GetLbEndpoints()) != 1 {
			f.add("load_assignment", "a cluster of type LOGICAL_DNS has exactly one endpoint")
		}
	}
	names := c.GetType() == clusterpb.Cluster_STRICT_DNS || c.GetType() == clusterpb.Cluster_LOGICAL_DNS
	f.assignment("load_assignment", a, names)
}

func (f *faults) assignment(path string, a *endpointpb.ClusterLoadAssignment, names bool) {
	localities := map[uint32]uint64{} // sums of weights, by priority
	for i, l := range a.GetEndpoints() {
		at := fmt.Sprintf("%s.endpoints[%d]", path, i)
		localities[l.GetPriority()] += uint64(l.GetLoadBalancingWeight().GetValue())
		var sum uint64
		for j, e := range l.GetLbEndpoints() {
			sum += uint64(e.GetLoadBalancingWeight().GetValue())
			f.address(fmt.Sprintf("%s.lb_endpoints[%d].endpoint.address", at, j), e.GetEndpoint().GetAddress(), names)
		}
		if sum > math.MaxUint32 {
			f.add(at, "the sum of the weights of its endpoints is %d, at most %d is allowed", sum,
				uint32(math.MaxUint32))
		}
	}
	for p, sum := range localities {
		if sum > math.MaxUint32 {
			f.add(path, "the sum of the weights of all localities of priority %d is %d, at most %d is allowed", p, sum,
				uint32(math.MaxUint32))
		}
	}
}

func (f *faults) outlier(o *clusterpb.OutlierDetection) {
	if o == nil {
		return
	}
	if most := o.GetMaxEjectionTime(); most != nil && most.AsDuration() < o.GetBaseEjectionTime().AsDuration() {
		f.add("outlier_detection.max_ejection_time", "is below the base ejection time")
	}
}

// Endpoint returns the rules that an endpoint breaks, of an assignment that the proxy asks for.
func Endpoint(e *endpointpb.LbEndpoint) []Fault {
	f := &faults{}
	f.validate(e)
	f.address("endpoint.address", e.GetEndpoint().GetAddress(), false)
	return f.list
}
