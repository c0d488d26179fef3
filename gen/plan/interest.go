package plan

import (
	"slices"
	"strings"

	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// interest finds the bases that a change may affect, so that a change costs nothing for the scopes that do not see it:
// explicit scopes stand under the hosts and namespaces that they import, all others under everything.
type interest struct {
	all         *baseSet
	byHost      map[string]*baseSet // "host" of imports that name one
	byNamespace map[string]*baseSet // "namespace" of imports with a pattern
	wide        *baseSet            // default scopes, routers, imports of patterns in every namespace
	searches    uint64              // how often it was asked whom a change concerns
}

func newInterest() interest {
	return interest{&baseSet{}, map[string]*baseSet{}, map[string]*baseSet{}, &baseSet{}, 0}
}

// baseSet is a set of bases in an order that stays: those that are brought to each change one after another have what
// they hold one after another in memory. A nil set is empty.
type baseSet struct {
	list []*baseState
	at   map[*baseState]int // where each is in list
}

func (s *baseSet) add(bs *baseState) {
	if _, ok := s.at[bs]; ok {
		return
	}
	if s.at == nil {
		s.at = map[*baseState]int{}
	}
	s.at[bs] = len(s.list)
	s.list = append(s.list, bs)
}

// remove takes a base out, if it is in: the last one takes its place.
func (s *baseSet) remove(bs *baseState) {
	at, ok := s.at[bs]
	if !ok {
		return
	}
	last := len(s.list) - 1
	moved := s.list[last]
	s.list[at], s.at[moved] = moved, at
	s.list[last] = nil
	s.list = s.list[:last]
	delete(s.at, bs)
}

func (s *baseSet) len() int {
	if s == nil {
		return 0
	}
	return len(s.list)
}

// listings calls f with each set that a base belongs to. It reports whether the base belongs to the wide ones.
func (x *interest) listings(bs *baseState, f func(m map[string]*baseSet, k string)) (wide bool) {
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
	x.all.add(bs)
	if x.listings(bs, func(m map[string]*baseSet, k string) {
		if m[k] == nil {
			m[k] = &baseSet{}
		}
		m[k].add(bs)
	}) {
		x.wide.add(bs)
	}
}

func (x *interest) remove(bs *baseState) {
	x.all.remove(bs)
	x.wide.remove(bs)
	x.listings(bs, func(m map[string]*baseSet, k string) {
		if m[k] == nil {
			return
		}
		if m[k].remove(bs); m[k].len() == 0 {
			delete(m, k)
		}
	})
}

// in returns the bases that affected may concern, each once.
func (x *interest) in(affected *scope.Affected, old, n *snapshot.Snapshot) []*baseState {
	x.searches++
	c := &concerned{search: x.searches, seen: map[string]struct{}{}}
	if affected.All {
		c.add(x.all)
		return c.bases
	}
	c.add(x.wide)
	for h := range affected.Routes {
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

func (c *concerned) add(set *baseSet) {
	c.bases = slices.Grow(c.bases, set.len())
	for _, bs := range set.list {
		if bs.found != c.search {
			bs.found = c.search
			c.bases = append(c.bases, bs)
		}
	}
}

// under adds the bases that stand under a key of one kind.
func (c *concerned) under(sets map[string]*baseSet, kind, key string) {
	set := sets[key]
	if set.len() == 0 {
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
