package plan

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen/plan/outbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/gen/plan/section"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// hostsStep is what a change that concerns virtual hosts alone makes of scopes that are no differences from others,
// such as those of Sidecars. It is worked out once for all that answer alike, and what some of them hold as one chunk
// becomes one chunk.
//
// Owned by the config goroutine, while the change is planned.
type hostsStep struct {
	tables   *Tables
	affected *scope.Affected
	old, n   *snapshot.Snapshot
	kinds    map[value.Traits]*kindStep
	kind     value.Traits // the one that was asked for last, and what is made for it
	last     *kindStep
}

// kindStep is a hostsStep for proxies with the same Traits.
type kindStep struct {
	ports   map[int]*scope.Alike[*chunked.Patch[*encodecache.Fragment]]
	sniffed scope.Alike[section.Edits]
}

// newHostsStep returns the step of a change; nil if it concerns more than virtual hosts.
func (t *Tables) newHostsStep(affected *scope.Affected, old, n *snapshot.Snapshot) *hostsStep {
	if !affected.OnlyRoutes() {
		return nil
	}
	return &hostsStep{tables: t, affected: affected, old: old, n: n, kinds: map[value.Traits]*kindStep{}}
}

// of returns what is made for proxies with the same Traits.
func (s *hostsStep) of(k value.Traits) *kindStep {
	if s.last != nil && s.kind == k {
		return s.last
	}
	out := s.kinds[k]
	if out == nil {
		out = &kindStep{ports: map[int]*scope.Alike[*chunked.Patch[*encodecache.Fragment]]{}}
		s.kinds[k] = out
	}
	s.kind, s.last = k, out
	return out
}

// advance returns b brought to the Snapshot of the step; b itself if nothing changes.
func (s *hostsStep) advance(b *base) *base {
	kind := s.of(b.scope.Traits)
	hosts, routes := make([]portEdit, 0, 2), make([]chunked.Edit[*encodecache.Entry], 0, 2)
	for _, had := range b.hosts {
		if !s.affected.OnRoutePort(had.port) {
			continue
		}
		next := s.patch(kind, b.scope, had.port).Of(had.Hosts())
		if next == had.Hosts() {
			continue
		}
		now := s.tables.newPortHosts(had.port, had.Ends(), next)
		hosts = append(hosts, portEdit{had.port, now})
		routes = append(routes, now.edit(had.port))
	}
	sniffed := kind.sniffed.Get(b.scope, s.sniffed)
	if len(routes)+len(sniffed) == 0 {
		return b
	}
	next := *b
	next.snap = s.n
	next.hosts = b.hosts.edited(hosts)
	next.routes = b.routes.Apply(append(routes, sniffed.List()...))
	if next.routes == b.routes {
		return b
	}
	next.parts = s.tables.moveParts(&move{from: b, to: b.scope, n: s.n, affected: s.affected})
	return &next
}

// patch returns what becomes of the virtual hosts of a port.
func (s *hostsStep) patch(k *kindStep, sc *scope.Scope, port int) *chunked.Patch[*encodecache.Fragment] {
	made := k.ports[port]
	if made == nil {
		made = &scope.Alike[*chunked.Patch[*encodecache.Fragment]]{}
		k.ports[port] = made
	}
	return made.Get(sc, func(sc *scope.Scope) *chunked.Patch[*encodecache.Fragment] {
		list := s.tables.hostEdits(sc.OnPort(s.n, port, s.affected.Memo), s.affected)
		return chunked.NewPatch(list, s.tables.sections.hosts, outbound.MeasureFragment)
	})
}

// sniffed returns the route configurations that services have of their own.
func (s *hostsStep) sniffed(sc *scope.Scope) (out section.Edits) {
	for host := range s.affected.EachSniffed(sc, s.old, s.n) {
		for _, r := range s.tables.SniffedRoutes(s.old, sc, host) {
			out.Drop(r.Name())
		}
		for _, r := range s.tables.SniffedRoutes(s.n, sc, host) {
			section.Put(&out, r)
		}
	}
	return out
}
