package mesh

import (
	meshv1 "istio.io/api/networking/v1alpha3"
	networkingv1 "istio.io/client-go/pkg/apis/networking/v1"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// destination returns port 80 of service s.
func (m *Mesh) destination(s int) *meshv1.Destination {
	return &meshv1.Destination{Host: m.Host(s), Port: &meshv1.PortSelector{Number: 80}}
}

// prefixed returns a route for paths that begin so.
func prefixed(prefix string, to ...*meshv1.HTTPRouteDestination) *meshv1.HTTPRoute {
	return &meshv1.HTTPRoute{
		Match: []*meshv1.HTTPMatchRequest{{Uri: &meshv1.StringMatch{MatchType: &meshv1.StringMatch_Prefix{Prefix: prefix}}}},
		Route: to,
	}
}

// Route returns the VirtualService of service s in its n-th edition: a path that goes to the service of that name, and
// weights. That of the first service is the gateways' too.
func (m *Mesh) Route(s, n int) *networkingv1.VirtualService {
	o := &networkingv1.VirtualService{TypeMeta: networking("VirtualService"),
		ObjectMeta: meta(m.namespace(s), m.service(s), m.created(s))}
	to := func(version string, weight int) *meshv1.HTTPRouteDestination {
		d := &meshv1.HTTPRouteDestination{Destination: m.destination(s), Weight: int32(weight)}
		if m.ruled(s) {
			d.Destination.Subset = version
		}
		return d
	}
	first := 1 + n%99
	api := prefixed("/api/", to("v1", 100))
	api.Timeout, api.Retries = durationpb.New(5e9), &meshv1.HTTPRetry{Attempts: 3}
	o.Spec = meshv1.VirtualService{Hosts: []string{m.Host(s)}, Http: []*meshv1.HTTPRoute{
		api, {Route: []*meshv1.HTTPRouteDestination{to("v1", first), to("v2", 100-first)}},
	}}
	if s == 0 {
		m.expose(s, &o.Spec)
	}
	return o
}

// expose lets the gateways have the routes of service s too, if there are any.
func (m *Mesh) expose(s int, v *meshv1.VirtualService) {
	if m.Gateway.Deployments > 0 {
		v.Hosts = append(v.Hosts, m.service(s)+".example.com")
		v.Gateways = append(m.gatewayNames(), "mesh")
	}
}

// markedRoute returns the VirtualService of the first service after edit n: with one more route, whose path says n. 0
// is none.
func (m *Mesh) markedRoute(n int) *networkingv1.VirtualService {
	o := m.Route(0, 0)
	if n > 0 {
		o.Spec.Http = append([]*meshv1.HTTPRoute{m.saying(0, n)}, o.Spec.Http...)
	}
	return o
}

// addedRoute returns the VirtualService that AddRoute makes.
func (m *Mesh) addedRoute(n int) *networkingv1.VirtualService {
	s := m.unrouted()
	o := m.Route(s, 0)
	o.Name += "-added"
	m.expose(s, &o.Spec)
	o.Spec.Http = append([]*meshv1.HTTPRoute{m.saying(s, n)}, o.Spec.Http...)
	return o
}

// saying returns a route whose path says n.
func (m *Mesh) saying(s, n int) *meshv1.HTTPRoute {
	return prefixed(Path(n), &meshv1.HTTPRouteDestination{Destination: m.destination(s)})
}

// rule returns the DestinationRule of service s.
func (m *Mesh) rule(s int) *networkingv1.DestinationRule {
	o := &networkingv1.DestinationRule{TypeMeta: networking("DestinationRule"),
		ObjectMeta: meta(m.namespace(s), m.service(s), m.created(s))}
	o.Spec = meshv1.DestinationRule{Host: m.Host(s), Subsets: []*meshv1.Subset{
		{Name: "v1", Labels: map[string]string{"version": "v1"}},
		{Name: "v2", Labels: map[string]string{"version": "v2"}},
	}, TrafficPolicy: &meshv1.TrafficPolicy{
		ConnectionPool: &meshv1.ConnectionPoolSettings{Tcp: &meshv1.ConnectionPoolSettings_TCPSettings{MaxConnections: 100}}}}
	if m.chance(outlierDetection, s, m.OutlierDetection) {
		o.Spec.TrafficPolicy.OutlierDetection = &meshv1.OutlierDetection{Consecutive_5XxErrors: wrapperspb.UInt32(5)}
	}
	return o
}
