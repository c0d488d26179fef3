package gateway

import (
	"slices"
	"strings"

	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// portServers is one port of a router with all servers that want it, and those of them that have it. Of servers that
// cannot stand together the first by rank wins. Immutable; what does not conflict with a change is not looked at.
type portServers struct {
	servers chunked.Map[*server] // rank
	// conflicts has each server under each of its conflictKeys, and its rank.
	conflicts chunked.Map[*server]
	admitted  chunked.Map[*server] // bind, rank
}

// serverChange is a server before and after a change: old is nil of one that is new, new is nil of one that is gone.
// Both have the same rank and port.
type serverChange struct{ old, new *server }

// portMode is how a port decides about servers: by the first of all.
type portMode struct {
	first *server
	// plain tells that the first server has no TLS or is HTTP. Then another server can have the port too if it is at
	// another address, or if both are HTTP. Where plain is false others can have it that have routes of their own, and
	// of those without TLS one at each address, if only the first server comes before it there.
	plain bool
}

func (p *portServers) mode() portMode {
	for _, s := range p.servers.All() {
		return portMode{s, s.TLS == nil || s.Port.Protocol.IsHTTP()}
	}
	return portMode{}
}

// same reports whether two modes decide alike about all other servers.
func (m portMode) same(o portMode) bool {
	if m.first == nil || o.first == nil || m.plain != o.plain || m.first.rank != o.first.rank ||
		m.first.Bind != o.first.Bind {
		return false
	}
	return m.first.Port.Protocol.IsHTTP() == o.first.Port.Protocol.IsHTTP()
}

// Two servers that have a conflict key in common cannot both have a port. nameKey is the one of a server with TLS for a
// host at its address, routeKey that of the name of its route configuration, plainKey that of the address of a server
// without TLS.
func nameKey(bind string, h value.ServerHost) string {
	return indexKey("name", bind, h.Namespace+"/"+h.Host)
}

func routeKey(route string) string { return indexKey("route", route) }
func plainKey(bind string) string  { return indexKey("open", bind) }

// conflictKeys returns the keys of what a server takes on its port: another server that wants the same conflicts with
// it.
func (s *server) conflictKeys() (out []string) {
	if s.TLS == nil {
		out = append(out, plainKey(s.Bind))
	} else {
		for _, h := range s.Hosts {
			out = append(out, nameKey(s.Bind, h))
		}
	}
	if s.route != "" {
		out = append(out, routeKey(s.route))
	}
	return out
}

// disturbs returns the keys about which a server may conflict with others.
func (m portMode) disturbs(s *server) []string {
	if !m.plain {
		out := s.conflictKeys()
		if s.TLS != nil {
			out = append(out, plainKey(s.Bind))
		}
		return out
	}
	return slices.DeleteFunc(s.conflictKeys(), func(key string) bool { return !strings.HasPrefix(key, "name") })
}

// change returns p after servers come and go, and the changes that this makes to those that have the port.
func (p *portServers) change(changes []serverChange) (*portServers, []serverChange) {
	next := &portServers{servers: p.servers, conflicts: p.conflicts, admitted: p.admitted}
	servers, conflicts := chunked.Edits[*server]{}, chunked.Edits[*server]{}
	for _, c := range changes {
		if c.old != nil {
			servers.Drop(c.old.rank)
			for _, h := range c.old.conflictKeys() {
				conflicts.Drop(indexKey(h, c.old.rank))
			}
		}
		if c.new != nil {
			servers.Put(c.new.rank, c.new)
			for _, h := range c.new.conflictKeys() {
				conflicts.Put(indexKey(h, c.new.rank), c.new)
			}
		}
	}
	next.servers, next.conflicts = servers.Apply(p.servers), conflicts.Apply(p.conflicts)
	mode := next.mode()
	var open []*server
	if mode.same(p.mode()) {
		open = next.disturbed(mode, changes)
	} else {
		for _, s := range next.servers.All() {
			open = append(open, s)
		}
	}
	return next, next.decide(mode, open, p, changes)
}

// disturbed returns the servers of p about which must be decided anew after changes, by rank: those that came, and
// those that conflict with any that came or went, or with one of these.
func (p *portServers) disturbed(mode portMode, changes []serverChange) []*server {
	seen := map[*server]struct{}{}
	known := map[string]struct{}{}
	var queue, out []*server
	for _, c := range changes {
		if c.old != nil {
			queue = append(queue, c.old)
		}
		if c.new != nil {
			seen[c.new] = struct{}{}
			queue, out = append(queue, c.new), append(out, c.new)
		}
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		for _, key := range mode.disturbs(s) {
			if _, ok := known[key]; ok {
				continue
			}
			known[key] = struct{}{}
			for _, o := range below(p.conflicts, key) {
				if _, ok := seen[o]; !ok {
					seen[o] = struct{}{}
					queue, out = append(queue, o), append(out, o)
				}
			}
		}
	}
	slices.SortFunc(out, byRank)
	return out
}

func byRank(a, b *server) int { return strings.Compare(a.rank, b.rank) }

// serverVerdicts collect who has what while servers are decided about in the order of their ranks.
type serverVerdicts struct {
	mode   portMode
	names  map[string]struct{}
	routes map[string]struct{}
	joined map[string]struct{} // binds at which another than the first server stands
}

// decide decides about the open servers; the others of before stay as they are. It sets who is admitted and returns
// what changed of that.
func (p *portServers) decide(mode portMode, open []*server, before *portServers,
	changes []serverChange) []serverChange {
	v := &serverVerdicts{mode, map[string]struct{}{}, map[string]struct{}{}, map[string]struct{}{}}
	undecided := map[*server]struct{}{}
	for _, s := range open {
		undecided[s] = struct{}{}
	}
	for _, c := range changes {
		if c.old != nil {
			undecided[c.old] = struct{}{}
		}
	}
	byRank := map[string]serverChange{}
	note := func(s *server, admitted bool) {
		c := byRank[s.rank]
		if admitted {
			c.new = s
		}
		byRank[s.rank] = c
	}
	for s := range undecided {
		if old, ok := before.admitted.Get(indexKey(s.Bind, s.rank)); ok && old == s {
			byRank[s.rank] = serverChange{old: s}
		}
	}
	for _, s := range open {
		note(s, v.admit(s, func() bool { return before.joinedBefore(s, mode, undecided) }))
	}
	var out []serverChange
	admitted := chunked.Edits[*server]{}
	for rank, c := range byRank {
		if c.old == c.new {
			continue
		}
		if c.old != nil {
			admitted.Drop(indexKey(c.old.Bind, rank))
		}
		if c.new != nil {
			admitted.Put(indexKey(c.new.Bind, rank), c.new)
		}
		out = append(out, c)
	}
	p.admitted = admitted.Apply(p.admitted)
	return out
}

// joinedBefore reports whether a server that is decided about already stands at the address of s, before s but not
// first of all.
func (p *portServers) joinedBefore(s *server, mode portMode, undecided map[*server]struct{}) bool {
	for _, o := range below(p.admitted, s.Bind) {
		if o.rank >= s.rank {
			return false
		}
		if _, ok := undecided[o]; !ok && o.rank != mode.first.rank {
			return true
		}
	}
	return false
}

// admit takes a server in if it can stand beside those before it. joined tells whether one that is decided about
// already stands there.
func (v *serverVerdicts) admit(s *server, joined func() bool) bool {
	if s.TLS != nil && !v.claimNames(s) {
		return false
	}
	if s == v.mode.first {
		v.routes[s.route] = struct{}{}
		return true
	}
	if first := v.mode.first; v.mode.plain {
		return first.Bind != s.Bind || first.Port.Protocol.IsHTTP() && s.Port.Protocol.IsHTTP()
	}
	if _, taken := v.routes[s.route]; taken && s.route != "" {
		return false
	}
	_, before := v.joined[s.Bind]
	v.joined[s.Bind] = struct{}{}
	if s.TLS == nil && (before || joined()) {
		return false
	}
	v.routes[s.route] = struct{}{}
	return true
}

// claimNames takes the hosts of a server at its address; it takes none if one is taken already.
func (v *serverVerdicts) claimNames(s *server) bool {
	for _, h := range s.Hosts {
		if _, ok := v.names[nameKey(s.Bind, h)]; ok {
			return false
		}
	}
	for _, h := range s.Hosts {
		v.names[nameKey(s.Bind, h)] = struct{}{}
	}
	return true
}
