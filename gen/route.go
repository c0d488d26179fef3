package gen

import (
	"strconv"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// RoutesKey is what the routes of a VirtualService depend on, on one port and for one group of clients.
type RoutesKey struct {
	Service *value.VirtualService
	// Port is the port that clients call; a destination without a port means it too.
	Port int
	// Refused are the verdicts of the matches that look at the client: see Verdicts.
	Refused Verdicts
	// Destinations are those hosts of which more is to be known than their name.
	Destinations *DestinationLink
	// TLS is whether the requests come over TLS.
	TLS bool
	// Proxyless leaves out what gRPC clients without a proxy refuse.
	Proxyless bool
}

// Verdicts say for each match of a VirtualService's HTTP routes, in order, whether the client is one that it is for: a
// byte each, '1' where it is not. Empty where all are.
type Verdicts string

// refuses reports the verdict of match i.
func (v Verdicts) refuses(i int) bool { return i < len(v) && v[i] == '1' }

// DestinationLink is one piece of a list of Destinations; lists with equal content are made of the same pointers.
type DestinationLink struct {
	Destination
	Next *DestinationLink
}

// Destination is what is known of a host that routes lead to.
type Destination struct {
	Host string
	// Target is the host that it is an alias of; empty otherwise.
	Target string
	// Port is its only port, where that is what a destination without a port means; 0 otherwise.
	Port int
	// Rule is its DestinationRule, where that has a consistent hash.
	Rule *value.DestinationRule
}

// find returns what is known of host.
func (l *DestinationLink) find(host string) Destination {
	for ; l != nil; l = l.Next {
		if l.Host == host {
			return l.Destination
		}
	}
	return Destination{}
}

// defaultRouteName is the name of the route that a service has without a VirtualService.
const defaultRouteName = "default"

// defaultRoute returns the route of a service that no VirtualService speaks of.
func defaultRoute(k VirtualHostKey) *routepb.Route {
	action := &routepb.RouteAction{ClusterSpecifier: &routepb.RouteAction_Cluster{Cluster: ClusterName(k.Port, "",
		k.Host)}}
	setTimeout(action, value.Duration{}, k.Proxyless)
	action.RetryPolicy = retryPolicy(k.Mesh.Retries, false)
	if h := hashPolicy(serviceHash(k.Rule, k.Port)); h != nil {
		action.HashPolicy = []*routepb.RouteAction_HashPolicy{h}
	}
	return &routepb.Route{
		Name: defaultRouteName, Match: anyPath(), Action: &routepb.Route_Route{Route: action},
		Decorator: &routepb.Decorator{Operation: k.Host + ":" + strconv.Itoa(k.Port) + "/*"},
	}
}

// routesOf returns the routes of a VirtualService, up to the first that matches everything.
func routesOf(k RoutesKey, mesh *value.RouteSettings) []*routepb.Route {
	var out []*routepb.Route
	n := 0 // matches so far
	for _, h := range k.Service.HTTP {
		matches := h.Matches
		if len(matches) == 0 {
			if r := routeOf(k, mesh, h, nil); r != nil {
				return append(out, r)
			}
			continue
		}
		for i, m := range matches {
			if k.Refused.refuses(n+i) || m.Port != 0 && m.Port != k.Port {
				continue
			}
			r := routeOf(k, mesh, h, m)
			if r == nil {
				continue
			}
			out = append(out, r)
			if matchesAll(r.GetMatch()) {
				return out
			}
		}
		n += len(matches)
	}
	return out
}

// routeOf returns the route of one match of an HTTP route, or with nil of a route without matches; nil if it leads
// nowhere.
func routeOf(k RoutesKey, mesh *value.RouteSettings, h *value.HTTPRoute, m *value.HTTPMatch) *routepb.Route {
	match := anyPath()
	if m == nil {
		m = &value.HTTPMatch{}
	} else {
		match = routeMatch(m)
	}
	out := &routepb.Route{Name: h.Name, Match: match, Metadata: ConfigMetadata(k.Service.Meta,
		"virtual-service"), StatPrefix: m.StatPrefix}
	if m.Name != "" {
		out.Name += "." + m.Name
	}
	ops := headerOperations(h.Headers)
	out.RequestHeadersToAdd, out.RequestHeadersToRemove = ops.requestAdd, ops.requestRemove
	out.ResponseHeadersToAdd, out.ResponseHeadersToRemove = ops.responseAdd, ops.responseRemove
	switch {
	case h.Redirect != nil:
		out.Action = &routepb.Route_Redirect{Redirect: redirect(h.Redirect, k.Port, k.TLS)}
	case h.Response != nil:
		out.Action = &routepb.Route_DirectResponse{DirectResponse: directResponse(h.Response)}
	default:
		action := forward(k, mesh, h, ops.authority)
		if action == nil {
			return nil
		}
		if len(h.Destinations) == 1 {
			appendDestinationHeaders(out, action, h.Destinations[0].Headers)
		}
		out.Action = &routepb.Route_Route{Route: action}
	}
	out.Decorator = &routepb.Decorator{Operation: operation(out, k)}
	out.TypedPerFilterConfig = filterConfigs(h, k.Proxyless)
	return out
}

// operation names a route for traces: the destination where there is one, else the VirtualService.
func operation(r *routepb.Route, k RoutesKey) string {
	path := "/*"
	switch p := r.GetMatch().GetPathSpecifier().(type) {
	case *routepb.RouteMatch_Prefix:
		path = p.Prefix + "*"
	case *routepb.RouteMatch_Path:
		path = p.Path
	case *routepb.RouteMatch_SafeRegex:
		path = p.SafeRegex.GetRegex()
	}
	if host, port, ok := parseCluster(r.GetRoute().GetCluster()); ok {
		return host + ":" + port + path
	}
	return k.Service.Name + ":" + strconv.Itoa(k.Port) + path
}

// ConfigMetadata names the object that a part of the configuration was made from.
func ConfigMetadata(m value.Meta, kind string) *corepb.Metadata {
	path := "/apis/networking.istio.io/v1/namespaces/" + m.Namespace + "/" + kind + "/" + m.Name
	return &corepb.Metadata{FilterMetadata: map[string]*structpb.Struct{
		"istio": {Fields: map[string]*structpb.Value{"config": structpb.NewStringValue(path)}},
	}}
}
