package scope

import (
	"slices"

	"github.com/pilotd/pilotd/snapshot/value"
)

// hasStreams reports whether a VirtualService, which may be nil, has TCP or TLS routes.
func hasStreams(vs *value.VirtualService) bool {
	return vs != nil && vs.HasStreams()
}

// leadsAlike reports whether explicit scopes see the same services because of either of two versions of a
// VirtualService: both are seen by the same clients, and name the same destinations in the same routes.
func leadsAlike(a, b *value.VirtualService) bool {
	if a == nil || b == nil || hasStreams(a) || hasStreams(b) {
		return false
	}
	return a.Export.Public == b.Export.Public && slices.Equal(a.Export.Namespaces, b.Export.Namespaces) &&
		slices.Equal(a.Hosts, b.Hosts) &&
		slices.Equal(a.Gateways, b.Gateways) &&
		slices.EqualFunc(a.HTTP, b.HTTP, routeLeadsAlike)
}

// routeLeadsAlike compares what destinationPorts reads of a route.
func routeLeadsAlike(a, b *value.HTTPRoute) bool {
	return slices.EqualFunc(a.Matches, b.Matches,
		func(a, b *value.HTTPMatch) bool { return a.Namespace == b.Namespace }) &&
		slices.EqualFunc(a.Destinations, b.Destinations, func(a, b value.WeightedDestination) bool {
			return sameDestination(a.Destination, b.Destination)
		}) &&
		slices.EqualFunc(a.Mirrors, b.Mirrors, func(a, b value.Mirror) bool {
			return sameDestination(a.Destination, b.Destination)
		})
}

func sameDestination(a, b value.Destination) bool { return a.Host == b.Host && a.Port == b.Port }
