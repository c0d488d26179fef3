package outbound

import (
	"cmp"
	"slices"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// tcpChains returns the chains that forward the bytes of connections to a service port: by the VirtualServices of its
// host, else to itself.
func (v View) tcpChains(at ListenerAddress, c ServicePort) []gen.ChainKey {
	if c.port.Protocol.IsTLS() {
		if out := v.tlsRules(c); len(out) > 0 {
			return out
		}
	} else if out, all := v.tcpRules(c); all {
		return out
	} else if len(out) > 0 {
		return append(out, v.ownChain(at, c))
	}
	return []gen.ChainKey{v.ownChain(at, c)}
}

// ownChain forwards to the service itself. Where only the server name can tell services apart, it takes that of the
// service.
func (v View) ownChain(at ListenerAddress, c ServicePort) gen.ChainKey {
	port := c.port.Number
	if len(c.service.Ports) == 1 {
		port = c.service.Ports[0].Number
	}
	cluster := gen.ClusterName(port, "", c.service.Host)
	stats := gen.StatName{DomainSuffix: v.n.Mesh.DomainSuffix, Service: c.service, Port: &value.Port{Number: port}}
	out := gen.ChainKey{Defined: c.service.Object, TCP: gen.TCPProxyKey{
		StatPrefix: stats.Of(v.n.Mesh.Clusters.Stat, cluster), Upstreams: gen.Upstreams(cluster),
		Protocol: readsAlong(c.port.Protocol),
		Policy:   gen.NewTCPPolicy(v.sc.DestinationRule(v.n, c.service), ""),
	}}
	if c.ranges != "" {
		out.Prefixes = gen.Prefixes([]string{c.ranges})
	}
	if c.port.Protocol.IsTLS() && (c.ranges != "" || at.Wildcard) {
		out.ServerNames = gen.ServerNames(v.serverNames(c.service))
	}
	return out
}

// serverNames returns the names by which clients ask for a service: its own, and all forms of those of ExternalName
// services that stand for it.
func (v View) serverNames(svc *value.Service) []string {
	out := []string{svc.Host}
	for _, alias := range scope.Aliases(v.n, v.sc, svc) {
		for _, d := range v.sc.OnPort(v.n, 0, nil).Names(alias) {
			out = append(out, d.Name)
		}
	}
	return out
}

// readsAlong returns the protocol where its filter exists, else nothing: the Key of others does not depend on it.
func readsAlong(p value.Protocol) value.Protocol {
	if p == value.Mongo {
		return p
	}
	return ""
}

// tlsRules returns the chains of the TLS routes for a service's host and port.
func (v View) tlsRules(c ServicePort) (out []gen.ChainKey) {
	for _, vs := range v.rulesOf(c.service) {
		for _, r := range vs.TLS {
			for _, m := range r.Matches {
				chain := v.Routed(vs, r.Destinations, c.port)
				if chain.TCP.Upstreams == "" || !v.applies(m, c.port.Number) {
					continue
				}
				chain.VirtualService = value.Meta{Namespace: vs.Namespace, Name: vs.Name}
				chain.ServerNames = gen.ServerNames(m.ServerNames)
				chain.Prefixes = v.prefixes(m.Subnets, c)
				if !slices.ContainsFunc(out, chain.SameMatch) { // the first of equal matches is the one that is reached
					out = append(out, chain)
				}
			}
		}
	}
	return out
}

// tcpRules returns the chains of the TCP routes for a service's host and port; all, if the last of them takes all
// connections.
func (v View) tcpRules(c ServicePort) (out []gen.ChainKey, all bool) {
	for _, vs := range v.rulesOf(c.service) {
		for _, r := range vs.TCP {
			subnets, any := v.tcpMatches(r, c.port.Number)
			chain := v.Routed(vs, r.Destinations, c.port)
			if chain.TCP.Upstreams == "" || !any && len(subnets) == 0 {
				continue
			}
			if any {
				chain.VirtualService = value.Meta{Namespace: vs.Namespace, Name: vs.Name}
				chain.Prefixes = v.prefixes(nil, c)
				return append(out, chain), true
			}
			chain.Prefixes = gen.Prefixes(subnets)
			if !slices.ContainsFunc(out, chain.SameMatch) {
				out = append(out, chain)
			}
		}
	}
	own := v.prefixes(nil, c)
	return out, own != "" && slices.ContainsFunc(out, func(o gen.ChainKey) bool { return o.Prefixes == own })
}

// tcpMatches returns the subnets to which a route is for connections; any, if it is for all.
func (v View) tcpMatches(r *value.StreamRoute, port int) (subnets []string, any bool) {
	if len(r.Matches) == 0 {
		return nil, true
	}
	for _, m := range r.Matches {
		if !v.applies(m, port) {
			continue
		}
		if len(m.Subnets) == 0 {
			return nil, true
		}
		subnets = append(subnets, m.Subnets...)
	}
	return subnets, false
}

// prefixes returns the destination ranges of a match, or else the service's own.
func (v View) prefixes(subnets []string, c ServicePort) string {
	if len(subnets) == 0 && c.ranges != "" {
		subnets = []string{c.ranges}
	}
	return gen.Prefixes(subnets)
}

// applies reports whether a match is for the scope's clients and a port.
func (v View) applies(m *value.StreamMatch, port int) bool {
	return (len(m.Gateways) == 0 || slices.Contains(m.Gateways, "mesh")) && v.sc.HasLabels(m.Labels) &&
		(m.Port == 0 || m.Port == port) && (m.Namespace == "" || v.sc.In(m.Namespace))
}

// Routed returns a chain to the destinations of a route, without its match. A route that leads nowhere gives one
// without upstreams.
func (v View) Routed(vs *value.VirtualService, routes []value.WeightedDestination,
	port *value.Port) (chain gen.ChainKey) {
	if len(routes) == 0 {
		return chain
	}
	first := routes[0].Destination
	var rule *value.DestinationRule
	svc, pattern := v.sc.Service(v.n, first.Host), ""
	if svc != nil {
		rule, pattern = v.sc.DestinationRule(v.n, svc), v.n.Mesh.Clusters.Stat
	}
	chain.TCP.Protocol = readsAlong(port.Protocol)
	if len(routes) == 1 {
		cluster := v.clusterOf(first, port.Number)
		chain.TCP.Upstreams, chain.TCP.Policy = gen.Upstreams(cluster), gen.NewTCPPolicy(rule, first.Subset)
		chain.TCP.StatPrefix = gen.StatName{DomainSuffix: v.n.Mesh.DomainSuffix, Service: svc, Port: port,
			Subset: first.Subset}.Of(pattern, cluster)
		return chain
	}
	chain.TCP.StatPrefix, chain.TCP.Policy = vs.Name+"."+vs.Namespace, gen.NewTCPPolicy(rule, "")
	for _, r := range routes {
		if r.Weight > 0 {
			chain.TCP.Upstreams = chain.TCP.Upstreams.Add(v.clusterOf(r.Destination, port.Number), r.Weight)
		}
	}
	return chain
}

// clusterOf returns the cluster of a destination for connections to a port.
func (v View) clusterOf(d value.Destination, port int) string {
	host := d.Host
	svc := v.sc.Service(v.n, host)
	if svc != nil && svc.ExternalName != "" {
		host = svc.ExternalName
	}
	switch {
	case d.Port != 0:
		port = d.Port
	case svc != nil && len(svc.Ports) == 1:
		port = svc.Ports[0].Number
	}
	return gen.ClusterName(port, d.Subset, host)
}

// rulesOf returns the VirtualServices with routes for bytes that speak of a service's host to clients in the mesh, in
// the order in which they count.
func (v View) rulesOf(svc *value.Service) (out []*value.VirtualService) {
	add := func(vs *value.VirtualService) {
		if vs.HasStreams() && slices.Contains(vs.Gateways, "mesh") &&
			v.sc.SeesVirtualService(vs) &&
			!slices.Contains(out, vs) {
			out = append(out, vs)
		}
	}
	if svc.Wildcard() {
		for vs := range v.n.VirtualServicesUnder(svc.Host) {
			add(vs)
		}
		for vs := range v.n.VirtualServicesOfOddPatterns() {
			if slices.ContainsFunc(vs.Hosts, func(h string) bool { return value.HostMatches(h, svc.Host) }) {
				add(vs)
			}
		}
	}
	for p := range snapshot.Patterns(svc.Host) {
		for vs := range v.n.VirtualServicesOfHost(p) {
			add(vs)
		}
	}
	slices.SortFunc(out, func(a, b *value.VirtualService) int {
		return cmp.Or(cmp.Compare(v.ruleRank(a), v.ruleRank(b)), value.CompareAge(a.Meta, b.Meta))
	})
	return out
}

// ruleRank orders VirtualServices before their age does, as rank orders services.
func (v View) ruleRank(vs *value.VirtualService) int {
	switch {
	case vs.Export.Public:
		return 2
	case !v.sc.In(vs.Namespace):
		return 1
	}
	return 0
}
