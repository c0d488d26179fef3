package plan

import (
	"cmp"
	"slices"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/gen/plan/source"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// A family is the default scopes in use that differ in their namespace alone. What they have differs little: a
// namespace has short names for its own services, sees what is exported to it, and has rules of its own. So each is
// made as a difference from what an outsider has:
//
//	outsider, and who its insiders are ─┬─► a namespace that comes: the outsider's resources, and its own units anew
//	                                    └─► a change: insiders of a unit that it touches make what it touches anew,
//	                                        all others take what became of the outsider, chunk by chunk
//
// Owned by the config goroutine.
type family struct {
	members  []*baseState
	scope    *scope.Scope // that of the outsider, watched
	outsider *base        // nil if it could not be made: then each member is made by itself
	// step is what the change that is planned makes of the outsider; nil if that is made from nothing.
	step *familyStep
}

// outsiderNow returns what the outsider has; nil if there is none.
func (f *family) outsiderNow() *base {
	if f == nil {
		return nil
	}
	return f.outsider
}

// familyStep is what a change makes of an outsider, for the members that are no insiders of what it touches.
type familyStep struct {
	tables      *Tables
	was, is     *base
	clusters    *chunked.Transition[*encodecache.Entry]
	listeners   *chunked.Transition[*encodecache.Entry]
	routes      *chunked.Transition[*encodecache.Entry]
	assignments *chunked.Transition[*classes.Assignment]
	groups      *chunked.Transition[*classes.AssignmentGroup]
	hosts       []portStep
	// others are the edits of route configurations but for those of hosts.
	others []chunked.Edit[*encodecache.Entry]
	parts  partsStep
}

// portStep is what a change makes of the virtual hosts of a port. was is nil where the port was not served before, is
// where it is not any more.
type portStep struct {
	port    int
	was, is *portHosts
	hosts   *chunked.Transition[*encodecache.Fragment] // nil unless the port was and is served
}

// newFamily returns the family of a default scope, but for its outsider.
func (t *Tables) newFamily(f scope.Facts, labels value.Labels) *family {
	f.Namespace = scope.Outsider
	return &family{scope: scope.New(f, labels, t.trims).Watched()}
}

// familial reports whether scopes with such Facts are differences from an outsider.
func familial(f *scope.Facts) bool { return f.Sidecar == nil && f.Traits.Type != value.Router }

// familyFacts returns the Facts that the members of a family have in common.
func familyFacts(f scope.Facts) scope.Facts {
	f.Namespace = scope.Outsider
	return f
}

// found makes the outsider from nothing.
func (f *family) found(t *Tables, k *scope.Memo) {
	f.outsider, f.step = nil, nil
	f.scope.Watch()
	f.outsider = t.baseFor(k, f.scope)
}

// advance brings the outsider to n, and finds what that is for the members.
func (f *family) advance(t *Tables, n *snapshot.Snapshot, affected *scope.Affected) {
	was := f.outsider
	f.outsider, f.step = nil, nil
	f.scope.Meet()
	is := t.move(&move{from: was, to: f.scope, n: n, affected: affected})
	if affected.Wide {
		f.scope.MeetServed() // some serve ports that the outsider does not
	}
	if f.outsider, f.step = is, t.newFamilyStep(was, is); f.step.empty() {
		f.outsider = was // who stands beside it still does
	}
}

// member returns the base of a namespace: the outsider's, with the units of which it is an insider made anew.
func (f *family) member(t *Tables, k *scope.Memo, namespace string) *base {
	facts := f.scope.Facts
	facts.Namespace = namespace
	to := scope.New(facts, f.scope.Labels, t.trims)
	return t.move(&move{from: f.outsider, to: to, n: k.Snapshot, affected: f.scope.Inside(to, k)})
}

// follows reports whether a member, beside what the outsider was before, has nothing of its own in what a change
// touched.
func (f *family) follows(bs *baseState) bool {
	if f.step == nil || bs.broken || bs.beside != f.step.was {
		return false
	}
	return !f.scope.Met(bs.facts.Namespace)
}

func (t *Tables) newFamilyStep(was, is *base) *familyStep {
	s := &familyStep{tables: t, was: was, is: is,
		clusters:    chunked.NewTransition(was.clusters, is.clusters),
		listeners:   chunked.NewTransition(was.listeners, is.listeners),
		routes:      chunked.NewTransition(was.routes, is.routes),
		assignments: chunked.NewTransition(was.assignments, is.assignments),
		groups:      chunked.NewTransition(was.groups, is.groups),
		parts:       t.sources.step(was.parts, is.parts),
	}
	for _, old := range was.hosts {
		if now := is.hosts.get(old.port); now != old {
			p := portStep{port: old.port, was: old, is: now}
			if now != nil {
				p.hosts = chunked.NewTransition(old.Hosts(), now.Hosts())
			}
			s.hosts = append(s.hosts, p)
		}
	}
	for _, now := range is.hosts {
		if was.hosts.get(now.port) == nil {
			s.hosts = append(s.hosts, portStep{port: now.port, is: now})
		}
	}
	slices.SortFunc(s.hosts, func(a, b portStep) int { return cmp.Compare(a.port, b.port) })
	s.others = slices.DeleteFunc(slices.Clone(s.routes.Edits()), func(e chunked.Edit[*encodecache.Entry]) bool {
		return slices.ContainsFunc(s.hosts, func(p portStep) bool { return routeName(p.port) == e.Key })
	})
	return s
}

// empty reports whether the outsider has what it had.
func (s *familyStep) empty() bool {
	return s.clusters.Empty() && s.listeners.Empty() && s.routes.Empty() && s.assignments.Empty() &&
		s.groups.Empty() && len(s.hosts) == 0 && s.parts.empty()
}

// follow returns a member's base brought to where the outsider is now.
func (s *familyStep) follow(b *base) *base {
	next := &base{scope: b.scope, snap: s.is.snap, router: b.router,
		clusters: s.clusters.Of(b.clusters), listeners: s.listeners.Of(b.listeners),
		assignments: s.assignments.Of(b.assignments), groups: s.groups.Of(b.groups),
		parts: s.parts.of(b.parts)}
	hosts, routes := make([]portEdit, 0, 2), make([]chunked.Edit[*encodecache.Entry], 0, 2)
	own := false
	for i := range s.hosts {
		p := &s.hosts[i]
		now := p.is
		if had := b.hosts.get(p.port); had != p.was && p.hosts != nil {
			now, own = s.tables.newPortHosts(p.port, p.is.Ends(), p.hosts.Of(had.Hosts())), true
		}
		hosts, routes = append(hosts, portEdit{p.port, now}), append(routes, now.edit(p.port))
	}
	next.hosts = b.hosts.edited(hosts)
	if own {
		next.routes = b.routes.Apply(append(routes, s.others...))
	} else {
		next.routes = s.routes.Of(b.routes)
	}
	return next
}

// supplied returns b with the parts of the types that are made now: out of those of the outsider that stands beside it,
// or from nothing if f is nil.
func (t *Tables) supplied(b *base, k *scope.Memo, f *family) *base {
	next := *b
	if f == nil {
		next.parts = t.sources.advance(nil, source.At{}, source.At{Scope: b.scope, Snapshot: k.Snapshot}, nil)
	} else {
		next.parts = t.moveParts(&move{from: f.outsider, to: b.scope, n: k.Snapshot, affected: f.scope.Inside(b.scope, k)})
	}
	return &next
}
