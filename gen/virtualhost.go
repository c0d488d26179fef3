package gen

import (
	"net/netip"
	"strconv"
	"strings"

	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotd/pilotd/snapshot/value"
)

// VirtualHostKey is what a virtual host depends on: the routes of a VirtualService, of several in a row (gateways), or,
// without any, the default route to the service Host.
type VirtualHostKey struct {
	// Host and Port name the virtual host.
	Host string
	Port int
	// Domains are its domains, in order, joined by spaces.
	Domains string
	// Defined is the object that defines the service of the host; zero if there is none.
	Defined value.ObjectKey
	Mesh    *value.RouteSettings
	// Rule is the DestinationRule of Host where the default route hashes by it; nil otherwise.
	Rule *value.DestinationRule
	// Routes are those of a VirtualService. Its Service is nil where there is none: then the virtual host has the default
	// route, or no route if it is Bare.
	Routes RoutesKey
	// More are the routes of further VirtualServices, which follow.
	More *RoutesLink
	// Bare is a virtual host that has only the routes of VirtualServices, of which there may be none.
	Bare bool
	// RequireTLS redirects plain text requests to https.
	RequireTLS bool
	// Proxyless leaves out what gRPC clients without a proxy refuse.
	Proxyless bool
	// RegexSize is the largest RE2 program of a regular expression that the client takes, where the VirtualServices
	// hold larger ones. 0 where none is too large, so that clients of all kinds share the virtual host.
	RegexSize int
}

// RoutesLink is one piece of a list of RoutesKeys; lists with equal content are made of the same pointers.
type RoutesLink struct {
	RoutesKey
	Next *RoutesLink
}

// VirtualHost makes the virtual host of a key.
func VirtualHost(k VirtualHostKey) *routepb.VirtualHost {
	out := &routepb.VirtualHost{
		Name: HostPort(k.Host, k.Port), Domains: strings.Fields(k.Domains),
		IncludeRequestAttemptCount: k.Mesh.CountAttempts,
	}
	if k.RequireTLS {
		out.RequireTls = routepb.VirtualHost_ALL
	}
	if k.Routes.Service == nil && !k.Bare {
		out.Routes = []*routepb.Route{defaultRoute(k)}
		return out
	}
	if k.Routes.Service != nil {
		out.Routes = routesOf(k.Routes, k.Mesh)
	}
	if k.More == nil {
		return out
	}
	for l := k.More; l != nil; l = l.Next {
		out.Routes = append(out.Routes, routesOf(l.RoutesKey, k.Mesh)...)
	}
	out.Routes = catchAllLast(out.Routes)
	return out
}

// virtualHostField returns the virtual host of k as an encoded field of its RouteConfiguration. That of a
// VirtualService may hold maps of several entries, the default one never does.
func virtualHostField(k VirtualHostKey, vh *routepb.VirtualHost) []byte {
	m := &routepb.RouteConfiguration{VirtualHosts: []*routepb.VirtualHost{vh}}
	if k.Routes.Service == nil && k.More == nil {
		return Marshal(m)
	}
	return MarshalSorted(m)
}

// HostPort returns the name of the virtual host of a host on a port.
func HostPort(host string, port int) string { return Domain(host) + ":" + strconv.Itoa(port) }

// Domain returns host as it stands in a Host header: IPv6 addresses in brackets.
func Domain(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is6() {
		return "[" + host + "]"
	}
	return host
}

// catchAllLast moves the routes that match everything to the end; the others keep their order.
func catchAllLast(routes []*routepb.Route) []*routepb.Route {
	out := make([]*routepb.Route, 0, len(routes))
	var last []*routepb.Route
	for _, r := range routes {
		if matchesAll(r.GetMatch()) {
			last = append(last, r)
		} else {
			out = append(out, r)
		}
	}
	return append(out, last...)
}
