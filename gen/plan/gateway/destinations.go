package gateway

import (
	"slices"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/outbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// knowledge is what a router knows of destinations.
type knowledge struct {
	n  *snapshot.Snapshot
	sc *scope.Scope
}

// service returns the one that the VirtualServices of a namespace mean by host: that of their own namespace if the
// router may see it, else the one that the router means.
func (g knowledge) service(namespace, host string) *value.Service {
	svc := g.n.Service(value.ServiceKey{Host: host, Namespace: namespace})
	if svc != nil && svc.Export.VisibleTo(g.sc.Namespace) {
		return svc
	}
	return g.sc.Service(g.n, host)
}

// known returns what is to know of a host that the VirtualServices of a namespace route to, beside its name.
func (g knowledge) known(namespace, host string) gen.Destination {
	d := gen.Destination{Host: host}
	svc := g.service(namespace, host)
	if svc == nil {
		return d
	}
	if d.Target = svc.ExternalName; len(svc.Ports) == 1 {
		d.Port = svc.Ports[0].Number
	}
	if r := g.sc.DestinationRule(g.n, svc); gen.Hashes(r) {
		d.Rule = r
	}
	return d
}

// destinationsOf returns what there is to know of the hosts that a VirtualService routes to.
func (s *step) destinationsOf(vs *value.VirtualService) (list *gen.DestinationLink) {
	hosts := slices.Collect(outbound.Distinct(snapshot.Destinations(vs)))
	for _, host := range hosts {
		if d := (knowledge{s.n, s.sc}).known(vs.Namespace, host); d != (gen.Destination{Host: host}) {
			list = s.outbound.Routes.Destinations.Get(gen.DestinationLink{Destination: d, Next: list})
		}
	}
	return list
}
