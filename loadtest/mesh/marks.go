package mesh

import (
	"fmt"

	meshv1 "istio.io/api/networking/v1alpha3"
	networkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// What marked objects carry before the number of the change, so that whoever receives it knows which it is: two bytes of an address out of
// those reserved for benchmarks, and a path.
const (
	EndpointMark = "198.18."
	RouteMark    = "/change-"
	// LastMark is the highest number of a change.
	LastMark = 1<<16 - 1
)

// MarkedSlice is the EndpointSlice of service s after change n: with one more endpoint, whose address says n. 0 is none.
func (m *Mesh) MarkedSlice(s, n int) *discoveryv1.EndpointSlice {
	o := m.Slice(s, true)
	if n == 0 {
		return o
	}
	ready := true
	o.Endpoints = append(o.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("%s%d.%d", EndpointMark, n>>8, n&0xff)},
		Conditions: discoveryv1.EndpointConditions{Ready: &ready}})
	return o
}

// MarkedRoute is the VirtualService of the first service after change n: with one more route, whose path says n. 0 is none.
func (m *Mesh) MarkedRoute(n int) *networkingv1.VirtualService {
	o := m.Route(0, 0)
	if n == 0 {
		return o
	}
	o.Spec.Http = append([]*meshv1.HTTPRoute{{
		Match: []*meshv1.HTTPMatchRequest{{Uri: &meshv1.StringMatch{MatchType: &meshv1.StringMatch_Prefix{Prefix: fmt.Sprintf("%s%d/", RouteMark, n)}}}},
		Route: []*meshv1.HTTPRouteDestination{{Destination: &meshv1.Destination{Host: m.Host(0), Port: &meshv1.PortSelector{Number: 80}}}},
	}}, o.Spec.Http...)
	return o
}
