package gateway

import (
	"slices"
	"strings"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/outbound"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

func (h *hostRoutes) same(o *hostRoutes) bool { return h == o || h != nil && o != nil && *h == *o }

func (s *step) editRoutes(name string) *routesEdit {
	e := s.routeEdits[name]
	if e == nil {
		e = &routesEdit{hosts: map[string]struct{}{}}
		s.routeEdits[name] = e
	}
	return e
}

// replaceRoutes notes that a server has its port now in place of one that had it.
func (s *step) replaceRoutes(c serverChange) {
	if c.old != nil && c.new != nil && c.old.routesAlike(c.new) {
		if c.new.route != "" {
			e := s.editRoutes(c.new.route)
			e.changes = append(e.changes, c)
		}
		return
	}
	for _, one := range []serverChange{{old: c.old}, {new: c.new}} {
		srv := one.old
		if srv == nil {
			srv = one.new
		}
		if srv == nil || srv.route == "" {
			continue
		}
		e := s.editRoutes(srv.route)
		e.changes = append(e.changes, one)
		s.markServer(srv)
	}
}

// markServer marks the hosts that a server may have.
func (s *step) markServer(srv *server) {
	hosts := s.editRoutes(srv.route).hosts
	for _, h := range srv.asks {
		hosts[h.host] = struct{}{}
		if !strings.HasPrefix(h.host, "*") {
			continue
		}
		for vs := range s.n.RoutesOf(srv.gateway, snapshot.HTTPRoutes) {
			for _, o := range vs.Hosts {
				if value.HostMatches(h.host, o) {
					hosts[o] = struct{}{}
				}
			}
		}
	}
}

// change returns r with other servers; r may be nil. The hosts are not looked at yet.
func (r *routeConfig) change(name string, changes []serverChange) *routeConfig {
	next := &routeConfig{name: name}
	if r != nil {
		*next = *r
	}
	servers, asked, counts := chunked.Edits[*server]{}, chunked.Edits[*serverHost]{}, map[string]int{}
	for _, c := range changes {
		if s := c.old; s != nil {
			servers.Drop(s.rank)
			counts[indexKey(s.gateway, s.profile())]--
			for _, h := range s.asks {
				asked.Drop(indexKey(snapshot.Bucket(h.host), h.key))
			}
		}
		if s := c.new; s != nil {
			servers.Put(s.rank, s)
			counts[indexKey(s.gateway, s.profile())]++
			for _, h := range s.asks {
				asked.Put(indexKey(snapshot.Bucket(h.host), h.key), h)
			}
		}
	}
	profiles := chunked.Edits[int]{}
	for k, d := range counts {
		if n, _ := next.profiles.Get(k); d != 0 {
			profiles[k] = n + d // zero deletes
		}
	}
	next.servers, next.asked, next.profiles = servers.Apply(next.servers), asked.Apply(next.asked),
		profiles.Apply(next.profiles)
	return next
}

// profileOf returns the profile of all servers of a Gateway, whether they all have the same, and none if it has no
// servers.
func (r *routeConfig) profileOf(gateway string) (profile string, uniform bool) {
	if r == nil {
		return "", true
	}
	for k := range below(r.profiles, gateway) {
		if profile != "" {
			return "", false
		}
		profile = strings.TrimPrefix(k, gateway+indexSep)
	}
	return profile, true
}

// markAnchors marks all hosts of the Gateways of which the first server that has a VirtualService may now be one of
// another profile.
func (s *step) markAnchors(old, now *routeConfig, changes []serverChange) {
	done := map[string]struct{}{}
	for _, c := range changes {
		for _, srv := range []*server{c.old, c.new} {
			if srv == nil {
				continue
			}
			if _, ok := done[srv.gateway]; ok {
				continue
			}
			done[srv.gateway] = struct{}{}
			was, alike := old.profileOf(srv.gateway)
			is, uniform := now.profileOf(srv.gateway)
			if alike && uniform && (was == is || was == "" || is == "") {
				continue
			}
			for o := range now.serversOf(srv) {
				s.markServer(o)
			}
		}
	}
}

// serversOf yields the servers of the Gateway of srv, by rank.
func (r *routeConfig) serversOf(srv *server) func(yield func(*server) bool) {
	return func(yield func(*server) bool) {
		for _, o := range below(r.servers, srv.rank[:strings.LastIndex(srv.rank, indexSep)]) {
			if !yield(o) {
				return
			}
		}
	}
}

// hostOf works out one host of a route configuration; nil if nobody has it.
func (s *step) hostOf(r *routeConfig, host string) *hostRoutes {
	var asks []*serverHost
	for p := range snapshot.Patterns(host) {
		for _, h := range below(r.asked, p) {
			if value.HostMatches(h.host, host) {
				asks = append(asks, h)
			}
		}
	}
	slices.SortFunc(asks, func(a, b *serverHost) int { return strings.Compare(a.key, b.key) })
	out := &hostInMaking{hostRoutes: hostRoutes{host: host}}
	for len(asks) > 0 {
		n := 1
		for n < len(asks) && asks[n].server == asks[0].server {
			n++
		}
		s.addServer(out, r, asks[:n])
		asks = asks[n:]
	}
	if !out.there {
		return nil
	}
	out.group = indexKey(append(out.from, map[bool]string{true: "redirects", false: ""}[out.redirect])...)
	out.routes = s.tables.listRoutes(out.list)
	return &out.hostRoutes
}

// hostInMaking collects what servers give to a host.
type hostInMaking struct {
	hostRoutes
	there bool
	list  []gen.RoutesKey
	from  []string
}

// addServer adds the routes that one server gives to a host. asks are those of its hosts that the host falls under.
func (s *step) addServer(out *hostInMaking, r *routeConfig, asks []*serverHost) {
	srv := asks[0].server
	exact := slices.ContainsFunc(asks, func(h *serverHost) bool { return h.host == out.host })
	touch := func() {
		if !out.there {
			out.there, out.port = true, srv.Port.Number
		}
		out.redirect = out.redirect || srv.Redirect
	}
	for _, vs := range s.claimants(srv, out.host, exact) {
		if !slices.ContainsFunc(asks, func(h *serverHost) bool { return h.gives(vs, out.host) }) {
			continue
		}
		if k := s.routesOf(r, srv, vs); k != nil {
			touch()
			out.list, out.from = append(out.list, *k), append(out.from, srv.gateway, vs.Namespace+"/"+vs.Name)
		}
	}
	if srv.Redirect && exact {
		touch()
	}
}

// gives reports whether host, which falls under h, is the narrower of h and a host of a VirtualService that h takes.
func (h *serverHost) gives(vs *value.VirtualService, host string) bool {
	return h.takes(vs) && slices.ContainsFunc(vs.Hosts, func(o string) bool {
		n, ok := narrower(h.host, o)
		return ok && n == host
	})
}

// claimants returns the VirtualServices of a server's Gateway that may have a host there, in order of precedence.
// exact: the server has the host itself, so that any pattern that covers it will do.
func (s *step) claimants(srv *server, host string, exact bool) (out []*value.VirtualService) {
	add := func(bucket string) {
		for vs := range s.n.RoutesAt(srv.gateway, snapshot.HTTPRoutes, bucket) {
			if vs.Export.VisibleTo(s.sc.Namespace) && !slices.Contains(out, vs) {
				out = append(out, vs)
			}
		}
	}
	if !exact {
		add(snapshot.Bucket(host))
	} else {
		for p := range snapshot.Patterns(host) {
			add(p)
		}
	}
	slices.SortFunc(out, s.sc.ByPrecedence)
	return out
}

// routesOf returns the Key of the routes that a VirtualService has at a server's Gateway; nil if it has none. In one
// route configuration it is that of the Gateway's first server that has the VirtualService.
func (s *step) routesOf(r *routeConfig, srv *server, vs *value.VirtualService) *gen.RoutesKey {
	id := boundService{r.name, srv.gateway, vs}
	if k, ok := s.memo[id]; ok {
		return k
	}
	anchor := srv
	if _, uniform := r.profileOf(srv.gateway); !uniform {
		for o := range r.serversOf(srv) {
			if o.meets(vs) {
				anchor = o
				break
			}
		}
	}
	s.memo[id] = nil
	if refused, routed := s.sc.Verdicts(vs, anchor.Port.Number, anchor.gateway); routed {
		s.memo[id] = &gen.RoutesKey{Service: vs, Port: anchor.Port.Number, Refused: refused,
			Destinations: s.destinationsOf(vs), TLS: anchor.TLS != nil}
	}
	return s.memo[id]
}

// routesEntry returns a route configuration: the virtual hosts, or the one that stands for none.
func (s *step) routesEntry(r *routeConfig) *encodecache.Entry {
	header := s.outbound.Routes.Headers.Get(gen.RouteConfigurationKey{Name: r.name})
	if r.virtual.Len() > 0 {
		return outbound.Compose(r.name, header, r.virtual, nil)
	}
	for _, first := range r.servers.All() {
		return outbound.Compose(r.name, header, r.virtual,
			s.tables.blackhole.Get(gen.BlackholeKey{Port: first.Port.Number}))
	}
	return nil
}
