package snapshot

import (
	"iter"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/snapshot/value"
)

// RouteKind is a kind of routes that a VirtualService may have.
type RouteKind string

// The kinds of routes.
const (
	HTTPRoutes RouteKind = "http"
	TCPRoutes  RouteKind = "tcp"
	TLSRoutes  RouteKind = "tls"
)

// RouteKinds returns the kinds of routes that a VirtualService has.
func RouteKinds(vs *value.VirtualService) (out []RouteKind) {
	if len(vs.HTTP) > 0 {
		out = append(out, HTTPRoutes)
	}
	if len(vs.TCP) > 0 {
		out = append(out, TCPRoutes)
	}
	if len(vs.TLS) > 0 {
		out = append(out, TLSRoutes)
	}
	return out
}

// sidecars is the name of all sidecars where a VirtualService lists gateways.
const sidecars = "mesh"

// BoundToGateways reports whether a VirtualService binds to any gateway, and BoundToSidecars whether it does to
// sidecars.
func BoundToGateways(vs *value.VirtualService) bool {
	return slices.ContainsFunc(vs.Gateways, func(g string) bool { return g != sidecars })
}

// BoundToSidecars reports whether a VirtualService binds to sidecars.
func BoundToSidecars(vs *value.VirtualService) bool {
	return slices.Contains(vs.Gateways, sidecars)
}

// bindings yields the keys without age under which a VirtualService is found by who asks for a gateway's routes to a
// host.
func bindings(vs *value.VirtualService) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, g := range vs.Gateways {
			if g == sidecars {
				continue
			}
			for _, kind := range RouteKinds(vs) {
				for _, h := range vs.Hosts {
					if !yield(key(g, string(kind), Bucket(h))) {
						return
					}
				}
			}
		}
	}
}

// Bucket returns the one of the Patterns of whatever host falls under pattern under which an index holds it: pattern
// itself, unless its wildcard stands for a part of a name (*shop.example.com), then the next wider one that stands for
// whole ones.
func Bucket(pattern string) string {
	if pattern == "*" || !strings.HasPrefix(pattern, "*") || strings.HasPrefix(pattern, "*.") {
		return pattern
	}
	_, rest, ok := strings.Cut(pattern, ".")
	if !ok {
		return "*"
	}
	return "*." + rest
}

// RoutesAt yields the VirtualServices with routes of a kind that bind to a gateway ("namespace/name", not "mesh") and
// have a host whose Bucket is bucket, oldest first.
func (s *Snapshot) RoutesAt(gateway string, kind RouteKind, bucket string) iter.Seq[*value.VirtualService] {
	return under(s.virtual.bound, key(gateway, string(kind), bucket))
}

// RoutesOf yields all VirtualServices with routes of a kind that bind to a gateway, by Bucket: one comes as often as it
// has hosts.
func (s *Snapshot) RoutesOf(gateway string, kind RouteKind) iter.Seq[*value.VirtualService] {
	return under(s.virtual.bound, key(gateway, string(kind)))
}
