package snapshot

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// virtualIndex is all VirtualServices. Under one key they stand oldest first, which is the order in which conflicts are
// decided.
type virtualIndex struct {
	byHost        chunked.Map[*value.VirtualService] // host or pattern, age
	byGateway     chunked.Map[*value.VirtualService] // gateway ("mesh" or "namespace/name"), age
	byDestination chunked.Map[*value.VirtualService] // destination host, age
	bound         chunked.Map[*value.VirtualService] // gateway but "mesh", kind of routes, bucket of a host, age
}

// age returns a key part that sorts older objects first, and tells all apart.
func age(m value.Meta) string {
	text := fmt.Sprintf("%012d%s%s%s%s", m.Created, sep, m.Name, sep, m.Namespace)
	if m.Cluster != "" {
		text += sep + m.Cluster
	}
	return text
}

func (x virtualIndex) with(d *Delta) virtualIndex {
	var host, gateway, dest, bound editList[*value.VirtualService]
	put := func(vs *value.VirtualService, del bool) {
		if vs == nil {
			return
		}
		for _, h := range vs.Hosts {
			host.set(key(h, age(vs.Meta)), vs, del)
		}
		for _, g := range vs.Gateways {
			gateway.set(key(g, age(vs.Meta)), vs, del)
		}
		for d := range Destinations(vs) {
			dest.set(key(d, age(vs.Meta)), vs, del)
		}
		for b := range bindings(vs) {
			bound.set(key(b, age(vs.Meta)), vs, del)
		}
	}
	for _, c := range Of[*value.VirtualService](d.Objects) {
		put(c.Old, true)
		put(c.New, false)
	}
	return virtualIndex{
		byHost: x.byHost.Apply(host), byGateway: x.byGateway.Apply(gateway),
		byDestination: x.byDestination.Apply(dest),
		bound:         x.bound.Apply(bound),
	}
}

// Destinations yields the hosts that a VirtualService routes to, mirrors included; a host may come more than once.
func Destinations(vs *value.VirtualService) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, r := range vs.HTTP {
			for _, d := range r.Destinations {
				if !yield(d.Host) {
					return
				}
			}
			for _, m := range r.Mirrors {
				if !yield(m.Host) {
					return
				}
			}
		}
		for _, r := range slices.Concat(vs.TCP, vs.TLS) {
			for _, d := range r.Destinations {
				if !yield(d.Host) {
					return
				}
			}
		}
	}
}

// VirtualService returns the object of that namespace and name, or nil.
func (s *Snapshot) VirtualService(namespace, name string) *value.VirtualService {
	return Get[*value.VirtualService](s, namespace, name)
}

// VirtualServicesOfHost yields those that have exactly this host or pattern among their hosts, oldest first.
func (s *Snapshot) VirtualServicesOfHost(host string) iter.Seq[*value.VirtualService] {
	return under(s.virtual.byHost, host)
}

// VirtualServicesOfGateway yields those that bind to a gateway ("mesh" or "namespace/name"), oldest first.
func (s *Snapshot) VirtualServicesOfGateway(gateway string) iter.Seq[*value.VirtualService] {
	return under(s.virtual.byGateway, gateway)
}

// VirtualServicesTo yields those that route to a host, oldest first.
func (s *Snapshot) VirtualServicesTo(host string) iter.Seq[*value.VirtualService] {
	return under(s.virtual.byDestination, host)
}

// Patterns yields host and the wildcard patterns that cover it, most specific first: a.b.c, *.b.c, *.c, *. A host that
// is itself a pattern comes as it is, then its wider ones.
func Patterns(host string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield(host) {
			return
		}
		rest := strings.TrimPrefix(host, "*.")
		if rest == host {
			_, rest, _ = strings.Cut(host, ".")
		} else {
			_, rest, _ = strings.Cut(rest, ".")
		}
		for rest != "" {
			if !yield("*." + rest) {
				return
			}
			_, rest, _ = strings.Cut(rest, ".")
		}
		if host != "*" {
			yield("*")
		}
	}
}
