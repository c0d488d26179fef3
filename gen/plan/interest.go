package plan

import (
	"slices"
	"strings"

	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// interest finds the bases that a change may touch, so that a change costs nothing for the scopes that do not see it:
// explicit scopes stand under the hosts and namespaces that they import, all others under everything.
type interest struct {
	all         map[*baseState]struct{}
	byHost      map[string]map[*baseState]struct{} // "host" of imports that name one
	byNamespace map[string]map[*baseState]struct{} // "namespace" of imports with a pattern
	wide        map[*baseState]struct{}            // default scopes, routers, imports of patterns in every namespace
	searches    uint64                             // how often it was asked whom a change concerns
}

func newInterest() interest {
	return interest{map[*baseState]struct{}{}, map[string]map[*baseState]struct{}{},
		map[string]map[*baseState]struct{}{}, map[*baseState]struct{}{}, 0}
}

// listings calls f with each set that a base belongs to. It reports whether the base belongs to the wide ones.
func (x *interest) listings(bs *baseState, f func(m map[string]map[*baseState]struct{}, k string)) (wide bool) {
	for namespace, host := range bs.base.scope.Imports() {
		switch {
		case !strings.HasPrefix(host, "*"):
			f(x.byHost, host)
		case namespace != "*":
			f(x.byNamespace, namespace)
		default:
			wide = true
		}
	}
	return wide || bs.base.scope.Wide()
}

func (x *interest) add(bs *baseState) {
	x.all[bs] = struct{}{}
	if x.listings(bs, func(m map[string]map[*baseState]struct{}, k string) {
		if m[k] == nil {
			m[k] = map[*baseState]struct{}{}
		}
		m[k][bs] = struct{}{}
	}) {
		x.wide[bs] = struct{}{}
	}
}

func (x *interest) remove(bs *baseState) {
	delete(x.all, bs)
	delete(x.wide, bs)
	x.listings(bs, func(m map[string]map[*baseState]struct{}, k string) {
		delete(m[k], bs)
		if len(m[k]) == 0 {
			delete(m, k)
		}
	})
}

// in returns the bases that touch may concern, each once.
func (x *interest) in(touch *scope.Affected, old, n *snapshot.Snapshot) []*baseState {
	x.searches++
	c := &concerned{search: x.searches, seen: map[string]struct{}{}}
	if touch.All {
		c.add(x.all)
		return c.bases
	}
	c.add(x.wide)
	for h := range touch.Routes {
		c.under(x.byHost, "host", h)
		for _, s := range []*snapshot.Snapshot{old, n} {
			for svc := range s.ServicesOfHost(h) {
				c.under(x.byNamespace, "namespace", svc.Namespace)
			}
			for vs := range s.VirtualServicesOfHost(h) {
				c.under(x.byNamespace, "namespace", vs.Namespace)
			}
			for vs := range s.VirtualServicesTo(h) {
				c.callers(x, vs)
			}
		}
		if strings.HasPrefix(h, "*") {
			for host := range x.byHost {
				if value.HostMatches(h, host) {
					c.under(x.byHost, "host", host)
				}
			}
		}
	}
	return c.bases
}

// concerned collects bases. Each set is looked through once, however many of the things that changed lead to it.
type concerned struct {
	search uint64
	bases  []*baseState // those that the search has found
	seen   map[string]struct{}
}

func (c *concerned) add(set map[*baseState]struct{}) {
	c.bases = slices.Grow(c.bases, len(set))
	for bs := range set {
		if bs.found != c.search {
			bs.found = c.search
			c.bases = append(c.bases, bs)
		}
	}
}

// under adds the bases that stand under a key of one kind.
func (c *concerned) under(sets map[string]map[*baseState]struct{}, kind, key string) {
	set := sets[key]
	if len(set) == 0 {
		return
	}
	if _, ok := c.seen[kind+" "+key]; ok {
		return
	}
	c.seen[kind+" "+key] = struct{}{}
	c.add(set)
}

// callers adds the bases that import a VirtualService by one of its hosts or by its namespace.
func (c *concerned) callers(x *interest, vs *value.VirtualService) {
	c.under(x.byNamespace, "namespace", vs.Namespace)
	for _, h := range vs.Hosts {
		c.under(x.byHost, "host", h)
	}
}
