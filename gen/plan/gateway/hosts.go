package gateway

import (
	"fmt"
	"strings"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot/chunked"
)

// changeRoutes returns a route configuration with an edit; nil if no server has it any more. r may be nil.
func (s *step) changeRoutes(name string, r *routeConfig, e *routesEdit) *routeConfig {
	next := r.change(name, e.changes)
	s.markAnchors(r, next, e.changes)
	if next.servers.Len() == 0 {
		return nil
	}
	hosts, groups := chunked.Edits[string]{}, chunked.Edits[*hostRoutes]{}
	touched := map[string]struct{}{}
	for host := range e.hosts {
		old := next.host(host)
		now := s.hostOf(next, host)
		if old.same(now) {
			continue
		}
		if old != nil {
			hosts.Drop(host)
			groups.Drop(indexKey(old.group, specificity(host)))
			touched[old.group] = struct{}{}
		}
		if now != nil {
			hosts.Put(host, now.group)
			groups.Put(indexKey(now.group, specificity(host)), now)
			touched[now.group] = struct{}{}
		}
	}
	before := next.groups
	next.hosts, next.groups = hosts.Apply(next.hosts), groups.Apply(next.groups)
	virtual := chunked.Edits[*encodecache.Fragment]{}
	for group := range touched {
		for _, h := range below(before, group) {
			virtual.Drop(h.host)
			break
		}
		if key, f := s.virtualHost(next, group); f != nil {
			virtual.Put(key, f)
		}
	}
	next.virtual = virtual.Apply(next.virtual)
	return next
}

// host returns a host of a route configuration, or nil.
func (r *routeConfig) host(host string) *hostRoutes {
	group, ok := r.hosts.Get(host)
	if !ok {
		return nil
	}
	h, _ := r.groups.Get(indexKey(group, specificity(host)))
	return h
}

// virtualHost encodes the hosts of a group as one virtual host, named after the most specific; nil if the group is
// empty.
func (s *step) virtualHost(r *routeConfig, group string) (key string, f *encodecache.Fragment) {
	var first *hostRoutes
	var names []string
	for _, h := range below(r.groups, group) {
		if first == nil {
			first = h
		}
		names = append(names, h.host)
	}
	if first == nil {
		return "", nil
	}
	k := gen.VirtualHostKey{
		Host: first.host, Port: first.port, Domains: strings.Join(names, " "), Mesh: s.n.Mesh.Routes,
		RequireTLS: first.redirect, Bare: true,
	}
	if first.routes != nil {
		k.Routes, k.More = first.routes.RoutesKey, first.routes.Next
		size := 0
		for l := first.routes; l != nil; l = l.Next {
			size = max(size, l.Service.RegexSize)
		}
		k.RegexSize = s.outbound.RegexLimit(s.sc.Traits, size)
	}
	return first.host, s.outbound.Routes.Hosts.Get(k)
}

// specificity orders names before patterns, longer ones first.
func specificity(host string) string {
	kind := "0"
	if strings.HasPrefix(host, "*") {
		kind = "1"
	}
	return fmt.Sprintf("%s%05d%s", kind, 99999-len(host), host)
}
