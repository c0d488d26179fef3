package ingest

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
)

// Bounds on objects in which two lists multiply. They are far above what meshes use; docs/limits.md lists them.
const (
	// maxHostRoutes bounds the hosts of a VirtualService times the matches of its HTTP routes: every host gets all
	// routes, on each port of the mesh.
	maxHostRoutes = 1 << 16
	// maxEntryHosts, maxEntryAddresses, maxEntryPorts and maxEntryEndpoints are the limits of the ServiceEntry's CRD.
	// pilotd checks them too, because the API server may have an older CRD.
	maxEntryHosts, maxEntryAddresses, maxEntryPorts, maxEntryEndpoints = 256, 256, 256, 4096
	// maxEntryParts bounds the hosts of a ServiceEntry times its ports, and its addresses times its ports: each pair
	// becomes a cluster, or a listener, of every proxy.
	maxEntryParts = 1 << 14
	// maxRuleParts bounds the condition values of an AuthorizationPolicy's rules times the sources and operations of
	// each rule: the proxy's configuration repeats the conditions for each source and operation.
	maxRuleParts = 1 << 16
)

// firstTime adds k to s and reports whether it is new there. Checks find duplicates in a list with it, in time linear
// in the list's length.
func firstTime[K comparable](s set[K], k K) bool {
	_, there := s[k]
	s.add(k)
	return !there
}

// hostRoutes checks maxHostRoutes.
func (c *check) hostRoutes(spec *networking.VirtualService) {
	routes := 0
	for _, r := range spec.Http {
		routes += max(1, len(r.GetMatch()))
	}
	c.that(len(spec.Hosts)*routes <= maxHostRoutes, "spec.hosts",
		"expected at most %d hosts times HTTP routes, got %d hosts with %d routes each",
		maxHostRoutes, len(spec.Hosts), routes)
}

// ruleParts checks maxRuleParts.
func (c *check) ruleParts(rules []*security.Rule) {
	parts := 0
	for _, r := range rules {
		values := 0
		for _, w := range r.GetWhen() {
			values += len(w.GetValues()) + len(w.GetNotValues())
		}
		parts += values * max(1, len(r.GetFrom())+len(r.GetTo()))
	}
	c.that(parts <= maxRuleParts, "spec.rules",
		"expected at most %d values of conditions times sources and operations, got %d", maxRuleParts, parts)
}

// entrySize checks the bounds of a ServiceEntry.
func (c *check) entrySize(spec *networking.ServiceEntry) {
	for _, l := range []struct {
		field string
		n, of int
	}{
		{"spec.hosts", len(spec.Hosts), maxEntryHosts}, {"spec.addresses", len(spec.Addresses), maxEntryAddresses},
		{"spec.ports", len(spec.Ports), maxEntryPorts}, {"spec.endpoints", len(spec.Endpoints), maxEntryEndpoints},
	} {
		c.that(l.n <= l.of, l.field, "expected at most %d, got %d", l.of, l.n)
	}
	most := max(len(spec.Hosts), len(spec.Addresses))
	c.that(most*len(spec.Ports) <= maxEntryParts, "spec.ports",
		"expected at most %d hosts, or addresses, times ports, got %d times %d", maxEntryParts, most, len(spec.Ports))
}

// hostSet is a list of hosts, indexed to find those that cover a name.
type hostSet struct {
	exact    map[string]int // host to its index in the list
	suffixes map[string]int // what follows the "*" of a wildcard, to its index in the list
}

func newHostSet(hosts []string) hostSet {
	s := hostSet{exact: make(map[string]int, len(hosts)), suffixes: map[string]int{}}
	for i, h := range hosts {
		s.exact[h] = i
		if suffix, wild := strings.CutPrefix(h, "*"); wild {
			s.suffixes[suffix] = i
		}
	}
	return s
}

// wildcard finds a wildcard of the list, other than the one at index self, that covers a host by the rule of
// value.HostMatches.
func (s hostSet) wildcard(host string, self int) (at int, ok bool) {
	for i := min(1, len(host)); i <= len(host); i++ {
		if at, ok := s.suffixes[host[i:]]; ok && at != self {
			return at, true
		}
	}
	return 0, false
}

// covers reports whether a host of the list matches a server name. A short host stands for the Service of that name in
// namespace.
func (s hostSet) covers(name, namespace string) bool {
	if _, ok := s.exact[name]; ok {
		return true
	}
	if _, ok := s.wildcard(name, -1); ok {
		return true
	}
	short, rest, _ := strings.Cut(name, ".")
	_, ok := s.exact[short]
	return ok && strings.HasPrefix(rest, namespace+".")
}
