package gen

import (
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Hashes reports whether a rule has a consistent hash anywhere, so that routes depend on it.
func Hashes(d *value.DestinationRule) bool {
	if d == nil {
		return false
	}
	if policyHashes(d.Policy) {
		return true
	}
	for _, s := range d.Subsets {
		if policyHashes(s.Policy) {
			return true
		}
	}
	return false
}

func policyHashes(p *value.PortPolicies) bool {
	for one := range p.All {
		if hashOf(one) != nil {
			return true
		}
	}
	return false
}

// hashOf returns the hash of a policy, which may be nil; nil if there is none.
func hashOf(p *value.TrafficPolicy) *value.ConsistentHash {
	if p == nil || p.Balancer == nil {
		return nil
	}
	return p.Balancer.Hash
}

// ownHash returns the hash of a policy but for ports.
func ownHash(p *value.PortPolicies) *value.ConsistentHash {
	own := p.Own()
	return hashOf(&own)
}

// serviceHash returns the hash for requests to a port of a service itself.
func serviceHash(d *value.DestinationRule, port int) *value.ConsistentHash {
	if d == nil {
		return nil
	}
	if h := hashOf(d.Policy.OfPort(port)); h != nil {
		return h
	}
	return ownHash(d.Policy)
}

// destinationHash returns the hash for requests to a destination: its subset's before the rule's, and in each the
// port's, where the destination names one, before the general one.
func destinationHash(r *value.DestinationRule, d value.Destination) *value.ConsistentHash {
	if r == nil {
		return nil
	}
	for _, p := range []*value.PortPolicies{r.SubsetPolicy(d.Subset), r.Policy} {
		if d.Port != 0 {
			if h := hashOf(p.OfPort(d.Port)); h != nil {
				return h
			}
		}
		if h := ownHash(p); h != nil {
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

func hashPolicy(h *value.ConsistentHash) *routepb.RouteAction_HashPolicy {
	if h == nil {
		return nil
	}
	switch h.By {
	case value.HashHeader:
		return &routepb.RouteAction_HashPolicy{PolicySpecifier: &routepb.RouteAction_HashPolicy_Header_{
			Header: &routepb.RouteAction_HashPolicy_Header{HeaderName: h.Name},
		}}
	case value.HashCookie:
		c := &routepb.RouteAction_HashPolicy_Cookie{Name: h.Name, Ttl: duration(h.TTL), Path: h.Path}
		for _, a := range h.Attributes {
			c.Attributes = append(c.Attributes, &routepb.RouteAction_HashPolicy_CookieAttribute{Name: a.Name,
				Value: a.Value})
		}
		return &routepb.RouteAction_HashPolicy{PolicySpecifier: &routepb.RouteAction_HashPolicy_Cookie_{Cookie: c}}
	case value.HashAddress:
		return &routepb.RouteAction_HashPolicy{PolicySpecifier: &routepb.RouteAction_HashPolicy_ConnectionProperties_{
			ConnectionProperties: &routepb.RouteAction_HashPolicy_ConnectionProperties{SourceIp: h.Address},
		}}
	case value.HashParameter:
		return &routepb.RouteAction_HashPolicy{PolicySpecifier: &routepb.RouteAction_HashPolicy_QueryParameter_{
			QueryParameter: &routepb.RouteAction_HashPolicy_QueryParameter{Name: h.Name},
		}}
	}
	return nil
}
