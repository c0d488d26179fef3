package plan

import (
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
}

func newInterest() interest {
	return interest{map[*baseState]struct{}{}, map[string]map[*baseState]struct{}{},
		map[string]map[*baseState]struct{}{}, map[*baseState]struct{}{}}
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

// in are the bases that touch may concern.
func (x *interest) in(touch *scope.Affected, old, n *snapshot.Snapshot) map[*baseState]struct{} {
	if touch.All {
		return x.all
	}
	out := map[*baseState]struct{}{}
	add := func(m map[*baseState]struct{}) {
		for bs := range m {
			out[bs] = struct{}{}
		}
	}
	add(x.wide)
	for h := range touch.Routes {
		add(x.byHost[h])
		for _, s := range []*snapshot.Snapshot{old, n} {
			for svc := range s.ServicesOfHost(h) {
				add(x.byNamespace[svc.Namespace])
			}
			for vs := range s.VirtualServicesOfHost(h) {
				add(x.byNamespace[vs.Namespace])
			}
			for vs := range s.VirtualServicesTo(h) {
				x.callers(vs, add)
			}
		}
		if strings.HasPrefix(h, "*") {
			for host, m := range x.byHost {
				if value.HostMatches(h, host) {
					add(m)
				}
			}
		}
	}
	return out
}

// callers adds the bases that import a VirtualService by one of its hosts or by its namespace.
func (x *interest) callers(vs *value.VirtualService, add func(map[*baseState]struct{})) {
	add(x.byNamespace[vs.Namespace])
	for _, h := range vs.Hosts {
		add(x.byHost[h])
	}
}
