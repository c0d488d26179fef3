package gen

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Labels that say where an endpoint or a client is.
const (
	labelNetwork  = "topology.istio.io/network"
	labelCluster  = "topology.istio.io/cluster"
	labelRegion   = "topology.kubernetes.io/region"
	labelZone     = "topology.kubernetes.io/zone"
	labelSubZone  = "topology.istio.io/subzone"
	labelHostname = "kubernetes.io/hostname"
)

// LocalityRule is which settings rank the localities of a service's endpoints.
type LocalityRule struct {
	// Settings are nil where all localities rank alike.
	Settings *value.LocalityBalancing
	// Failover tells that endpoints may have different priorities. That needs something that takes a failing endpoint
	// out of use, else traffic would never go to the next priority.
	Failover bool
}

// LocalityRuleOf returns the rule in force: the DestinationRule's, else the service's traffic distribution, else the
// mesh's.
func LocalityRuleOf(mesh *value.ClusterSettings, svc *value.Service, p value.TrafficPolicy) LocalityRule {
	failover := p.Outlier != nil
	if p.Balancer != nil && p.Balancer.Locality != nil {
		return enabledRule(p.Balancer.Locality, failover)
	}
	near := []string{labelNetwork, labelRegion, labelZone}
	switch svc.TrafficDistribution {
	case "PreferSameZone":
		return LocalityRule{&value.LocalityBalancing{Priority: near}, true}
	case "PreferSameNode":
		return LocalityRule{&value.LocalityBalancing{Priority: append(near, labelSubZone, labelHostname)}, true}
	}
	return enabledRule(mesh.Locality, failover)
}

func enabledRule(s *value.LocalityBalancing, failover bool) LocalityRule {
	if s == nil || s.Enabled == value.No {
		return LocalityRule{nil, failover}
	}
	return LocalityRule{s, failover}
}

// ClientLocation is where a client runs.
type ClientLocation struct {
	Locality               value.Locality
	Network, Cluster, Node string
	// Labels are the client's that a setting reads.
	Labels value.Labels
}

// label returns a label of the client, or what its location says of it.
func (p *ClientLocation) label(k string) string {
	if v, ok := p.Labels[k]; ok {
		return v
	}
	switch k {
	case labelNetwork:
		return p.Network
	case labelCluster:
		return p.Cluster
	case labelRegion:
		return p.Locality.Region
	case labelZone:
		return p.Locality.Zone
	case labelSubZone:
		return p.Locality.SubZone
	case labelHostname:
		return p.Node
	}
	return ""
}

// Ordering is how localities and endpoints rank for a client, with nothing of the client that its rule does not look
// at: clients for which the same holds have equal Orderings. The zero Ordering ranks nothing.
type Ordering struct {
	// Distribute gives each locality its share of the traffic, for clients where this client is.
	Distribute *value.Distribution
	// Labels ranks endpoints by how many of the labels they have, in this order: "label=value", joined by commas.
	Labels string
	// Near ranks localities by how near they are to From, after Labels.
	Near bool
	From value.Locality
	// Rather is the region that is preferred to others where From's own fails; with Anywhere there is none.
	Rather   string
	Anywhere bool
}

// OrderingOf returns how the endpoints of a service rank for a client at a place.
func OrderingOf(rule LocalityRule, at *ClientLocation) Ordering {
	s := rule.Settings
	switch {
	case s == nil:
		return Ordering{}
	case len(s.Distribute) > 0:
		for _, d := range s.Distribute {
			if localityMatches(at.Locality, d.From) {
				return Ordering{Distribute: d}
			}
		}
		return Ordering{}
	case !rule.Failover:
		return Ordering{}
	}
	var o Ordering
	if len(s.Priority) > 0 {
		want := make([]string, 0, len(s.Priority))
		for _, l := range s.Priority {
			k, v, given := strings.Cut(l, "=")
			if !given {
				v = at.label(k)
			}
			want = append(want, k+"="+v)
		}
		o.Labels = strings.Join(want, ",")
		if len(s.Failover) == 0 {
			return o
		}
	}
	o.Near, o.From, o.Anywhere = true, at.Locality, true
	for _, f := range s.Failover {
		if f.From == at.Locality.Region {
			o.Rather, o.Anywhere = f.To, false
			break
		}
	}
	return o
}

// LocalityGroup are the endpoints of one locality and one score, as an assignment lists them.
type LocalityGroup struct {
	Locality value.Locality
	// Score is how many of the Ordering's labels they miss.
	Score int
	// Weight is the sum of the endpoints' weights, or the locality's share.
	Weight uint32
	// Priority is 0 for those that are used first.
	Priority uint32
	// LeftOut tells that the locality has no share of the traffic: it is listed without its endpoints.
	LeftOut bool
}

// Score returns how far from the client an endpoint is by its labels: 0 if it has them all.
func (o Ordering) Score(e *value.Endpoint) int {
	if o.Labels == "" {
		return 0
	}
	rest := strings.Count(o.Labels, ",") + 1
	for l := range strings.SplitSeq(o.Labels, ",") {
		k, v, _ := strings.Cut(l, "=")
		if e.Labels[k] != v {
			return rest
		}
		rest--
	}
	return 0
}

// Rank sets the priorities and weights of groups, which are all there are.
func (o Ordering) Rank(groups []*LocalityGroup) {
	if o.Distribute != nil {
		distribute(o.Distribute.To, groups)
		return
	}
	ranks := make([]int, len(groups))
	for i, g := range groups {
		ranks[i] = g.Score
	}
	ranks = dense(ranks)
	if o.Near {
		for i, g := range groups {
			ranks[i] = ranks[i]*5 + o.distance(g.Locality)
		}
		ranks = dense(ranks)
	}
	for i, g := range groups {
		g.Priority = uint32(ranks[i])
	}
}

// dense replaces ranks by 0, 1, 2 …, without holes, in the same order.
func dense(ranks []int) []int {
	all := slices.Compact(slices.Sorted(slices.Values(ranks)))
	out := make([]int, len(ranks))
	for i, r := range ranks {
		out[i], _ = slices.BinarySearch(all, r)
	}
	return out
}

// distance returns 0 in the same place, 1 in the same zone, 2 in the same region, 3 elsewhere, 4 where it is not to be
// either.
func (o Ordering) distance(to value.Locality) int {
	switch {
	case to == o.From:
		return 0
	case to.Region == o.From.Region && to.Zone == o.From.Zone:
		return 1
	case to.Region == o.From.Region:
		return 2
	case !o.Anywhere && to.Region != o.Rather:
		return 4
	}
	return 3
}

// distribute gives each group its part of the share of the pattern that it falls under, the narrowest first; a group
// under none is left out.
func distribute(shares map[string]uint32, groups []*LocalityGroup) {
	taken := make([]bool, len(groups))
	for _, pattern := range slices.SortedFunc(maps.Keys(shares), narrower) {
		var in []int
		var total uint64
		for i, g := range groups {
			if !taken[i] && localityMatches(g.Locality, pattern) {
				taken[i] = true
				in = append(in, i)
				total += uint64(g.Weight)
			}
		}
		for _, i := range in {
			share := float64(uint64(groups[i].Weight)*uint64(shares[pattern])) / float64(total)
			if share > 0 {
				groups[i].Weight = uint32(math.Ceil(share))
			}
		}
	}
	for i, g := range groups {
		g.LeftOut = !taken[i]
	}
}

// narrower orders locality patterns: those that name more of a locality first.
func narrower(a, b string) int {
	named := func(p string) (n int) {
		for part := range strings.SplitSeq(p, "/") {
			if part != "*" && part != "" {
				n++
			}
		}
		return n
	}
	return cmp.Or(cmp.Compare(named(b), named(a)), cmp.Compare(a, b))
}

// localityMatches reports whether l falls under a pattern "region/zone/subzone", in which "*" and what is missing stand
// for any.
func localityMatches(l value.Locality, pattern string) bool {
	region, rest, _ := strings.Cut(pattern, "/")
	zone, subZone, _ := strings.Cut(rest, "/")
	match := func(want, got string) bool { return want == "*" || want == "" || want == got }
	return (region == "*" || region == l.Region) && match(zone, l.Zone) && match(subZone, l.SubZone)
}
