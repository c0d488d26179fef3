package ingest

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// tlsRoute checks a route that matches server names. Each name must match a host of the VirtualService.
func (c *check) tlsRoute(at string, r *networking.TLSRoute, hosts hostSet, namespace string) {
	c.that(len(r.GetMatch()) > 0, at+".match", "expected at least one match")
	for i, m := range r.GetMatch() {
		in := item(at+".match", i)
		c.that(len(m.GetSniHosts()) > 0, in+".sniHosts", "expected at least one host")
		for j, h := range m.GetSniHosts() {
			c.serverName(item(in+".sniHosts", j), h)
			c.that(hosts.covers(h, namespace), item(in+".sniHosts", j),
				"expected a host that falls under spec.hosts, got %q", h)
		}
		for j, s := range m.GetDestinationSubnets() {
			c.subnet(item(in+".destinationSubnets", j), s)
		}
		c.optionalPort(in+".port", m.GetPort())
		c.labels(in+".sourceLabels", m.GetSourceLabels())
		c.gateways(in+".gateways", m.GetGateways())
	}
	c.streamDestinations(at, r.GetRoute())
}

// serverName checks a server name: a host, "*.host" for all names below it, or "*" for every name.
func (c *check) serverName(at, h string) {
	c.host(at, h, true)
	c.that(h == "*" || !strings.HasPrefix(h, "*") || strings.HasPrefix(h, "*."), at,
		`expected a server name, "*" or "*." and a domain, got %q`, h)
}

func (c *check) streamMatch(at string, m *networking.L4MatchAttributes) {
	for i, s := range m.GetDestinationSubnets() {
		c.subnet(item(at+".destinationSubnets", i), s)
	}
	if m.GetSourceSubnet() != "" {
		c.subnet(at+".sourceSubnet", m.GetSourceSubnet())
	}
	c.optionalPort(at+".port", m.GetPort())
	c.labels(at+".sourceLabels", m.GetSourceLabels())
	c.gateways(at+".gateways", m.GetGateways())
}

func (c *check) streamDestinations(at string, list []*networking.RouteDestination) {
	c.that(len(list) > 0, at+".route", "expected at least one destination")
	total := int64(0)
	for i, d := range list {
		to := item(at+".route", i)
		c.destination(to+".destination", d.GetDestination(), true)
		c.that(d.GetWeight() >= 0, to+".weight", "expected a weight of at least 0, got %d", d.GetWeight())
		total += int64(d.GetWeight())
	}
	c.that(len(list) < 2 || total > 0, at+".route", "expected weights that add up to more than 0")
}
