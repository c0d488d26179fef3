package gateway

import (
	"fmt"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/outbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/gen/plan/section"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Listeners returns the listeners of the router.
func (r *Router) Listeners() classes.Section { return r.made.listeners }

// Routes returns the route configurations of the router.
func (r *Router) Routes() classes.Section { return r.made.routes }

// Change is what differs between two Snapshots for the routers of a Scope.
type Change struct {
	Scope *scope.Scope
	// Old is the Snapshot that the Router was made of, if there is one already.
	Old, Now *snapshot.Snapshot
	Affected *scope.Affected
}

// Advance returns a Router after a change; nil is the one of nothing. Routers that differ in what only clusters and
// endpoints depend on are one. calls are the tables of virtual hosts, and of what routers call.
func (t *Tables) Advance(was *Router, c Change, calls *outbound.Tables) *Router {
	f := c.Scope.Facts
	f.ClusterID, f.Network, f.Node, f.Locality = "", "", "", value.Locality{}
	if r := t.routers.find(c.Now, f); r != nil {
		return r
	}
	s := &step{
		tables: t, outbound: calls, sc: c.Scope, old: c.Old, n: c.Now, was: was,
		listenerEdits: map[bindPort]*listenerEdit{}, routeEdits: map[string]*routesEdit{},
		memo: map[boundService]*gen.RoutesKey{},
	}
	if c.Affected.All || was == nil {
		s.begin()
	} else {
		s.Router = *was
		s.replaceAffected(c.Affected)
	}
	s.finish()
	out := s.Router // and not a part of the step, which holds what was before
	t.routers.note(c.Now, f, &out)
	return &out
}

// begin starts from nothing: every Gateway comes.
func (s *step) begin() {
	s.was = &Router{}
	s.old = &snapshot.Snapshot{Mesh: s.n.Mesh}
	var come []gatewayChange
	for gw := range s.n.Gateways() {
		if s.selects(gw) {
			come = append(come, gatewayChange{nil, gw})
		}
	}
	s.changeGateways(come)
}

// gatewayChange is a Gateway of the router that comes (no old), goes (no new), or is another one now.
type gatewayChange struct{ old, new *value.Gateway }

func (s *step) selects(gw *value.Gateway) bool {
	return gw != nil && s.sc.Labels.Contains(gw.Selector())
}

// changeGateways replaces the servers of Gateways, and what is made of those that have their port, before and after.
func (s *step) changeGateways(changes []gatewayChange) {
	byPort := map[int][]serverChange{}
	for _, c := range changes {
		for _, sc := range s.serverChanges(c) {
			if sc.old != nil {
				byPort[sc.old.port] = append(byPort[sc.old.port], sc)
			} else {
				byPort[sc.new.port] = append(byPort[sc.new.port], sc)
			}
		}
	}
	asked := chunked.Edits[*serverHost]{}
	for number, changes := range byPort {
		key := fmt.Sprintf("%05d", number)
		p, ok := s.ports.Get(key)
		if !ok {
			p = &portServers{}
		}
		p, admitted := p.change(changes)
		if p.servers.Len() > 0 {
			s.ports = s.ports.Set(key, p)
		} else {
			s.ports = s.ports.Delete(key)
		}
		for _, c := range admitted {
			for _, h := range c.old.hosts() {
				asked.Drop(h.indexed())
			}
			for _, h := range c.new.hosts() {
				asked.Put(h.indexed(), h)
			}
			s.replaceRoutes(c)
			s.replaceChains(c)
		}
	}
	s.asked = asked.Apply(s.asked)
}

// hosts returns those that a server asks for; none of no server.
func (s *server) hosts() []*serverHost {
	if s == nil {
		return nil
	}
	return s.asks
}

// indexed returns the key of a server's host among those of its Gateway.
func (h *serverHost) indexed() string {
	return indexKey(h.server.gateway, snapshot.Bucket(h.host), h.key)
}

// serverChanges returns the servers that a changed Gateway had, and those that it has, at the router's own ports. Those
// that stay are left out.
func (s *step) serverChanges(c gatewayChange) (out []serverChange) {
	before := s.serversBefore(c.old)
	after := serversOf(s.sc, c.new, before)
	for i := range max(len(before), len(after)) {
		var sc serverChange
		if i < len(before) {
			sc.old = before[i]
		}
		if i < len(after) {
			sc.new = after[i]
		}
		switch {
		case sc.old == sc.new:
		case sc.old != nil && sc.new != nil && (sc.old.port != sc.new.port || sc.old.rank != sc.new.rank):
			out = append(out, serverChange{old: sc.old}, serverChange{new: sc.new})
		default:
			out = append(out, sc)
		}
	}
	return out
}

// serversBefore returns the servers of a Gateway of the router as they are known.
func (s *step) serversBefore(gw *value.Gateway) (out []*server) {
	if gw == nil {
		return nil
	}
	rank := rankOf(gw)
	for i, spec := range gw.Servers {
		p, ok := s.was.ports.Get(fmt.Sprintf("%05d", ownPort(&s.sc.Facts, spec.Port.Number)))
		if !ok {
			continue
		}
		if had, ok := p.servers.Get(indexKey(rank, fmt.Sprintf("%05d", i))); ok {
			out = append(out, had)
		}
	}
	return out
}

// finish carries the edits out.
func (s *step) finish() {
	s.finishListeners()
	routes := chunked.Edits[*routeConfig]{}
	for name, edit := range s.routeEdits {
		old, _ := s.was.routes.Get(name)
		next := s.changeRoutes(name, old, edit)
		if next == nil {
			routes.Drop(name)
			s.edits.routes.Drop(name)
			continue
		}
		routes.Put(name, next)
		if old == nil || next.virtual.Len() == 0 || !old.virtual.Same(next.virtual) {
			section.Put(&s.edits.routes, s.routesEntry(next))
		}
	}
	s.routes = routes.Apply(s.routes)
	s.made = resources{s.edits.listeners.Apply(s.was.made.listeners), s.edits.routes.Apply(s.was.made.routes)}
}

func (s *step) finishListeners() {
	listeners := chunked.Edits[*listener]{}
	changed := map[bindPort]struct{}{}
	for at, edit := range s.listenerEdits {
		old := s.was.listener(at)
		next := s.changeListener(old, edit)
		if listeners.Drop(at.key()); next != nil {
			listeners.Put(at.key(), next)
		}
		if old == nil || next == nil || !old.chains.Same(next.chains) || s.was.listener(s.twin(at)) != nil {
			changed[at] = struct{}{}
		}
	}
	s.listeners = listeners.Apply(s.listeners)
	for at := range changed {
		name := s.header(at).Name()
		s.edits.listeners.Drop(name)
		if l := s.listenerAt(at); l != nil {
			section.Put(&s.edits.listeners, l)
		}
	}
}

// key returns the key of a listener in its index.
func (at bindPort) key() string { return indexKey(fmt.Sprintf("%05d", at.port), at.bind) }

// listener returns the one at an address, or nil.
func (r *Router) listener(at bindPort) *listener {
	l, _ := r.listeners.Get(at.key())
	return l
}

// twin returns where a listener of the same name listens: servers ask for all addresses in two ways. There is none of
// another address.
func (s *step) twin(at bindPort) bindPort {
	switch any := s.sc.Traits.AnyAddress(); at.bind {
	case "":
		return bindPort{any, at.port}
	case any:
		return bindPort{"", at.port}
	}
	return bindPort{}
}

// listenerAt returns the listener at an address, or nil: of two of one name that of which the first server is the
// younger.
func (s *step) listenerAt(at bindPort) *encodecache.Entry {
	twin := s.twin(at)
	a, b := s.listenerEntry(at), s.listenerEntry(twin)
	if a == nil || b != nil && s.firstRank(at) < s.firstRank(twin) {
		return b
	}
	return a
}

// firstRank returns the rank of the first server that has a port at an address.
func (r *Router) firstRank(at bindPort) string {
	if p, ok := r.ports.Get(fmt.Sprintf("%05d", at.port)); ok {
		for _, s := range below(p.admitted, at.bind) {
			return s.rank
		}
	}
	return ""
}
