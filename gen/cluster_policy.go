package gen

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/snapshot/value"
)

// TrafficPolicy is what is in force for one port of a service or of one of its subsets: the rule's policy, over it the
// subset's, and in each of them a port's own settings in place of all others; below it the mesh's defaults.
type TrafficPolicy struct {
	Pool          *networking.ConnectionPoolSettings
	Outlier       *networking.OutlierDetection
	Balancer      *networking.LoadBalancerSettings
	TLS           *networking.ClientTLSSettings
	ProxyProtocol *networking.TrafficPolicy_ProxyProtocol
	RetryBudget   *networking.TrafficPolicy_RetryBudget
}

// PolicyOf resolves the policy for a port of the service, or of the subset of that name.
func PolicyOf(mesh *value.Mesh, rule *value.DestinationRule, subset string, port int) TrafficPolicy {
	p, _ := ownPolicy(rule, port)
	if subset != "" {
		over, ofPort := policyAt(rule.Subset(subset).GetTrafficPolicy(), port)
		p = p.under(over, ofPort)
	}
	if d := meshPolicy(mesh); d != nil {
		if p.Pool == nil {
			p.Pool = d.Pool
		}
		if p.Outlier == nil {
			p.Outlier = d.Outlier
		}
	}
	return p
}

func ownPolicy(rule *value.DestinationRule, port int) (TrafficPolicy, bool) {
	if rule == nil {
		return TrafficPolicy{}, false
	}
	return policyAt(rule.Spec.GetTrafficPolicy(), port)
}

func meshPolicy(mesh *value.Mesh) *TrafficPolicy {
	if mesh == nil || mesh.Config.GetDefaultTrafficPolicy() == nil {
		return nil
	}
	d := mesh.Config.GetDefaultTrafficPolicy()
	return &TrafficPolicy{Pool: d.GetConnectionPool(), Outlier: d.GetOutlierDetection()}
}

// policyAt is p at a port. A port's own settings inherit nothing; ofPort tells that there are some.
func policyAt(p *networking.TrafficPolicy, port int) (at TrafficPolicy, ofPort bool) {
	for _, s := range p.GetPortLevelSettings() {
		if s.GetPort() != nil && int(s.GetPort().GetNumber()) == port {
			return TrafficPolicy{Pool: s.GetConnectionPool(), Outlier: s.GetOutlierDetection(),
				Balancer: s.GetLoadBalancer(), TLS: s.GetTls()}, true
		}
	}
	return TrafficPolicy{
		Pool: p.GetConnectionPool(), Outlier: p.GetOutlierDetection(), Balancer: p.GetLoadBalancer(), TLS: p.GetTls(),
		ProxyProtocol: p.GetProxyProtocol(),
		RetryBudget:   p.GetRetryBudget(),
	}, false
}

// under is p with what over sets in its place; with all of it, if over is a port's own.
func (p TrafficPolicy) under(over TrafficPolicy, ofPort bool) TrafficPolicy {
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
	if over.ProxyProtocol != nil {
		p.ProxyProtocol = over.ProxyProtocol
	}
	if over.RetryBudget != nil {
		p.RetryBudget = over.RetryBudget
	}
	return p
}

// endpointTLS is the TLS that decides which endpoints are marked as speaking mutual TLS: a port's own, else that of the
// same rule or subset. Unlike the TLS of a cluster, a port takes it over from its rule, and a subset does not.
func endpointTLS(rule *value.DestinationRule, subset string, port int) *networking.ClientTLSSettings {
	if rule == nil {
		return nil
	}
	p := rule.Spec.GetTrafficPolicy()
	if subset != "" {
		p = rule.Subset(subset).GetTrafficPolicy()
	}
	for _, s := range p.GetPortLevelSettings() {
		if int(s.GetPort().GetNumber()) == port && s.GetTls() != nil {
			return s.GetTls()
		}
	}
	return p.GetTls()
}
