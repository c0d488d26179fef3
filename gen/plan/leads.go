package plan

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/snapshot/value"
)

// hasStreams reports whether a VirtualService, which may be nil, has TCP or TLS routes.
func hasStreams(vs *value.VirtualService) bool {
	return vs != nil && len(vs.Spec.GetTcp())+len(vs.Spec.GetTls()) > 0
}

// leadsAlike reports whether explicit scopes see the same services because of either of two versions of a
// VirtualService: both are seen by the same clients, and name the same destinations in the same routes.
func leadsAlike(a, b *value.VirtualService) bool {
	if a == nil || b == nil || hasStreams(a) || hasStreams(b) {
		return false
	}
	return a.Export.Public == b.Export.Public && slices.Equal(a.Export.Namespaces, b.Export.Namespaces) &&
		slices.Equal(a.Spec.GetHosts(), b.Spec.GetHosts()) &&
		slices.Equal(a.Spec.GetGateways(), b.Spec.GetGateways()) &&
		slices.EqualFunc(a.Spec.GetHttp(), b.Spec.GetHttp(), routeLeadsAlike)
}

// routeLeadsAlike compares what destinationPorts reads of a route.
func routeLeadsAlike(a, b *networking.HTTPRoute) bool {
	return slices.EqualFunc(a.GetMatch(), b.GetMatch(),
		func(a, b *networking.HTTPMatchRequest) bool { return a.GetSourceNamespace() == b.GetSourceNamespace() }) &&
		slices.EqualFunc(a.GetRoute(), b.GetRoute(), func(a, b *networking.HTTPRouteDestination) bool {
			return sameDestination(a.GetDestination(), b.GetDestination())
		}) &&
		sameDestination(a.GetMirror(), b.GetMirror()) &&
		slices.EqualFunc(a.GetMirrors(), b.GetMirrors(), func(a, b *networking.HTTPMirrorPolicy) bool {
			return sameDestination(a.GetDestination(), b.GetDestination())
		})
}

func sameDestination(a, b *networking.Destination) bool {
	return (a == nil) == (b == nil) && a.GetHost() == b.GetHost() && (a.GetPort() == nil) == (b.GetPort() == nil) &&
		a.GetPort().GetNumber() == b.GetPort().GetNumber()
}
