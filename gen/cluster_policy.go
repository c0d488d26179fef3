package gen

import "github.com/pilotd/pilotd/snapshot/value"

// PolicyOf returns what is in force for a port of a service, or of the subset of that name: the rule's policy, over it
// the subset's, and in each of them a port's own settings in place of all others; below it the mesh's defaults.
func PolicyOf(mesh *value.ClusterSettings, rule *value.DestinationRule, subset string, port int) value.TrafficPolicy {
	p, _ := ownPolicy(rule, port)
	if subset != "" {
		over, ofPort := policyAt(rule.SubsetPolicy(subset), port)
		p = under(p, over, ofPort)
	}
	if p.Pool == nil {
		p.Pool = mesh.Pool
	}
	if p.Outlier == nil {
		p.Outlier = mesh.Outlier
	}
	return p
}

func ownPolicy(rule *value.DestinationRule, port int) (value.TrafficPolicy, bool) {
	if rule == nil {
		return value.TrafficPolicy{}, false
	}
	return policyAt(rule.Policy, port)
}

// policyAt returns p at a port. A port's own settings inherit nothing; ofPort tells that there are some.
func policyAt(p *value.PortPolicies, port int) (at value.TrafficPolicy, ofPort bool) {
	if own := p.OfPort(port); own != nil {
		return *own, true
	}
	return p.Own(), false
}

// under returns p with what over sets in its place; with all of it, if over is a port's own.
func under(p, over value.TrafficPolicy, ofPort bool) value.TrafficPolicy {
	if over.Pool != nil || ofPort {
		p.Pool = over.Pool
	}
	if over.Outlier != nil || ofPort {
		p.Outlier = over.Outlier
	}
	if over.Balancer != nil || ofPort {
		p.Balancer = over.Balancer
	}
	if over.TLS != nil || ofPort {
		p.TLS = over.TLS
	}
	if over.ProxyProtocol != value.NoProxyProtocol {
		p.ProxyProtocol = over.ProxyProtocol
	}
	if over.RetryBudget != nil {
		p.RetryBudget = over.RetryBudget
	}
	return p
}

// endpointTLS returns the TLS that decides which endpoints are marked as speaking mutual TLS: a port's own, else that
// of the same rule or subset. Unlike the TLS of a cluster, a port takes it over from its rule, and a subset does not.
func endpointTLS(rule *value.DestinationRule, subset string, port int) *value.ClientTLS {
	if rule == nil {
		return nil
	}
	p := rule.Policy
	if subset != "" {
		p = rule.SubsetPolicy(subset)
	}
	if own := p.OfPort(port); own != nil && own.TLS != nil {
		return own.TLS
	}
	return p.Own().TLS
}
