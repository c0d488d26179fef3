package gen

import (
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Hashes reports whether a rule has a consistent hash anywhere, so that routes depend on it.
func Hashes(d *value.DestinationRule) bool {
	if d == nil {
		return false
	}
	if policyHashes(d.Spec.GetTrafficPolicy()) {
		return true
	}
	for _, s := range d.Spec.GetSubsets() {
		if policyHashes(s.GetTrafficPolicy()) {
			return true
		}
	}
	return false
}

func policyHashes(p *networking.TrafficPolicy) bool {
	if p.GetLoadBalancer().GetConsistentHash() != nil {
		return true
	}
	for _, s := range p.GetPortLevelSettings() {
		if s.GetLoadBalancer().GetConsistentHash() != nil {
			return true
		}
	}
	return false
}

// portHash is the hash of the policy's settings for one port; nil if there is none.
func portHash(p *networking.TrafficPolicy, port uint32) *networking.LoadBalancerSettings_ConsistentHashLB {
	for _, s := range p.GetPortLevelSettings() {
		if s.GetPort().GetNumber() == port {
			return s.GetLoadBalancer().GetConsistentHash()
		}
	}
	return nil
}

// serviceHash is the hash for requests to a port of a service itself.
func serviceHash(d *value.DestinationRule, port int) *networking.LoadBalancerSettings_ConsistentHashLB {
	if d == nil {
		return nil
	}
	if h := portHash(d.Spec.GetTrafficPolicy(), uint32(port)); h != nil {
		return h
	}
	return d.Spec.GetTrafficPolicy().GetLoadBalancer().GetConsistentHash()
}

// destinationHash is the hash for requests to a destination: its subset's before the rule's, and in each the port's,
// where the destination names one, before the general one.
func destinationHash(r *value.DestinationRule, d value.Destination) *networking.LoadBalancerSettings_ConsistentHashLB {
	if r == nil {
		return nil
	}
	for _, p := range []*networking.TrafficPolicy{r.Subset(d.Subset).GetTrafficPolicy(),
		r.Spec.GetTrafficPolicy()} {
		if d.Port != 0 {
			if h := portHash(p, uint32(d.Port)); h != nil {
				return h
			}
		}
		if h := p.GetLoadBalancer().GetConsistentHash(); h != nil {
			return h
		}
	}
	return nil
}

// addHash adds the hash policy of a destination to an action, and reports whether it has a consistent hash.
func (k RoutesKey) addHash(a *routepb.RouteAction, d value.Destination) bool {
	h := destinationHash(k.Destinations.find(d.Host).Rule, d)
	if p := hashPolicy(h); p != nil {
		a.HashPolicy = append(a.HashPolicy, p)
	}
	return h != nil
}

func hashPolicy(in *networking.LoadBalancerSettings_ConsistentHashLB) *routepb.RouteAction_HashPolicy {
	switch h := in.GetHashKey().(type) {
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpHeaderName:
		return &routepb.RouteAction_HashPolicy{PolicySpecifier: &routepb.RouteAction_HashPolicy_Header_{
			Header: &routepb.RouteAction_HashPolicy_Header{HeaderName: h.HttpHeaderName},
		}}
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpCookie:
		c := &routepb.RouteAction_HashPolicy_Cookie{Name: h.HttpCookie.GetName(), Ttl: h.HttpCookie.GetTtl(),
			Path: h.HttpCookie.GetPath()}
		for _, a := range h.HttpCookie.GetAttributes() {
			c.Attributes = append(c.Attributes, &routepb.RouteAction_HashPolicy_CookieAttribute{Name: a.GetName(),
				Value: a.GetValue()})
		}
		return &routepb.RouteAction_HashPolicy{PolicySpecifier: &routepb.RouteAction_HashPolicy_Cookie_{Cookie: c}}
	case *networking.LoadBalancerSettings_ConsistentHashLB_UseSourceIp:
		return &routepb.RouteAction_HashPolicy{PolicySpecifier: &routepb.RouteAction_HashPolicy_ConnectionProperties_{
			ConnectionProperties: &routepb.RouteAction_HashPolicy_ConnectionProperties{SourceIp: h.UseSourceIp},
		}}
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpQueryParameterName:
		return &routepb.RouteAction_HashPolicy{PolicySpecifier: &routepb.RouteAction_HashPolicy_QueryParameter_{
			QueryParameter: &routepb.RouteAction_HashPolicy_QueryParameter{Name: h.HttpQueryParameterName},
		}}
	}
	return nil
}
