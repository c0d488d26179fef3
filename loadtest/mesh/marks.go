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
	LastMark = 156*156 - 1
)

// Address is the address that says n. All are equally long, so that one can stand for another in encoded bytes.
func Address(n int) string { return fmt.Sprintf("%s%d.%d", EndpointMark, 100+n/156, 100+n%156) }

// Path is the path that says n; all are equally long.
func Path(n int) string { return fmt.Sprintf("%s%05d/", RouteMark, n) }

// MarkedSlice is the EndpointSlice of service s after change n: with one more endpoint, whose address says n. 0 is none.
func (m *Mesh) MarkedSlice(s, n int) *discoveryv1.EndpointSlice {
	o := m.Slice(s, true)
	if n == 0 {
		return o
	}
	ready := true
	o.Endpoints = append(o.Endpoints, discoveryv1.Endpoint{Addresses: []string{Address(n)},
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
		Match: []*meshv1.HTTPMatchRequest{{Uri: &meshv1.StringMatch{MatchType: &meshv1.StringMatch_Prefix{Prefix: Path(n)}}}},
		Route: []*meshv1.HTTPRouteDestination{{Destination: &meshv1.Destination{Host: m.Host(0), Port: &meshv1.PortSelector{Number: 80}}}},
	}}, o.Spec.Http...)
	return o
}
