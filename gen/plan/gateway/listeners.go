package gateway

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/outbound"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// Prefixes of the keys of chains, by whether they look at TLS.
const (
	tlsChain  = "t"
	openChain = "o"
)

// openUnit is the key of the unit of all servers of plain HTTP, serverUnits the common first part of those of another
// server.
const openUnit = "open"

func serverUnits(s *server) string { return indexKey("server", s.rank) }

func (s *step) unit(key string, k gen.GatewayChainKey, serverNames ...string) *chainUnit {
	k.Access = accessOf(s.outbound, s.n, s.sc)
	f := s.tables.chains.Get(k)
	kind, sum := openChain, f.Sum()
	if k.ServerNames != "" || k.TLS != nil {
		kind = tlsChain
	}
	return &chainUnit{key: key, fragment: f, chain: indexKey(kind, k.ServerNames, hex.EncodeToString(sum[:])),
		serverNames: serverNames}
}

// accessOf says which requests and connections a router takes.
func accessOf(calls *outbound.Tables, n *snapshot.Snapshot, sc *scope.Scope) gen.AccessKey {
	k := gen.AccessKey{Policies: sc.Policies}
	if k.Policies.Empty() {
		return k
	}
	if p := k.Policies.Asked.Provider; p != nil && sc.Service(n, p.Host) == nil {
		k.Policies.Asked = p.Unseen()
	}
	k.Settings = n.Mesh.Access
	if sc.Traits.Upstream() {
		k.RegexSize = calls.RegexSize
	}
	return k
}

func (s *step) editListener(at bindPort) *listenerEdit {
	e := s.listenerEdits[at]
	if e == nil {
		e = &listenerEdit{chunked.Edits[*server]{}, chunked.Edits[*chainUnit]{}}
		s.listenerEdits[at] = e
	}
	return e
}

// replaceChains puts the chains of a server that has its port now in place of those of one that had it.
func (s *step) replaceChains(c serverChange) {
	if old := c.old; old != nil {
		e := s.editListener(old.at())
		if old.Port.Protocol.IsHTTP() {
			e.open.Drop(old.rank)
		} else if l := s.was.listener(old.at()); l != nil {
			for key := range below(l.units, serverUnits(old)) {
				e.units.Drop(key)
			}
		}
	}
	if c.new == nil {
		return
	}
	e := s.editListener(c.new.at())
	if c.new.Port.Protocol.IsHTTP() {
		e.open.Put(c.new.rank, c.new)
		return
	}
	for _, u := range s.unitsOf(c.new) {
		e.units.Put(u.key, u)
	}
}

// unitsOf returns the chains that a server wants which is no plain HTTP.
func (s *step) unitsOf(srv *server) (out []*chainUnit) {
	key := indexKey(serverUnits(srv), "")
	switch {
	case srv.terminatesHTTPS():
		return []*chainUnit{s.unit(key, s.httpChain(srv, srv.TLS), srv.sniNames()...)}
	case srv.passthrough():
		for _, vs := range s.streams(srv, snapshot.TLSRoutes) {
			out = append(out, s.passthroughUnits(srv, vs)...)
		}
		return out
	}
	if k, ok := s.tcpChain(srv); ok {
		out = append(out, s.unit(key, k))
	}
	return out
}

// httpChain returns the chain of an HTTP server, or of an HTTPS server that terminates TLS.
func (s *step) httpChain(srv *server, tls *value.ServerTLS) gen.GatewayChainKey {
	t := s.sc.Traits
	k := gen.GatewayChainKey{
		Mesh: s.n.Mesh.HTTP, Filters: t.Filters, HTTP10: t.HTTP10, GRPCWeb: srv.Port.Protocol == value.GRPCWeb, TLS: tls,
		RouteName: srv.route, StatPrefix: "outbound_" + s.header(srv.at()).Name(),
	}
	if tls != nil {
		k.Servers = s.n.Mesh.Servers
		k.ServerNames, k.ServerName, k.Gateway = gen.ServerNames(srv.sniHosts()), srv.Name, srv.owner
	}
	return k
}

// openChain returns the chain that all servers of plain HTTP share, that of the first; false if there is none.
func (s *step) openChain(open chunked.Map[*server]) (k gen.GatewayChainKey, ok bool) {
	var sharers []string
	for _, srv := range open.All() {
		if !ok {
			k, ok = s.httpChain(srv, nil), true
		}
		if len(sharers) == gen.MaxSharers {
			break
		}
		if !slices.Contains(sharers, srv.gateway) {
			sharers = append(sharers, srv.gateway)
		}
	}
	k.Sharers = gen.SharersOf(sharers)
	return k, ok
}

// header returns the listener at an address but for its chains.
func (s *step) header(at bindPort) gen.GatewayListenerKey {
	k := gen.GatewayListenerKey{Bind: at.bind, Port: at.port,
		ProxyProtocol: s.n.Mesh.ProxyProtocol}
	if k.Bind == "" {
		k.Bind = s.sc.Traits.AnyAddress()
	}
	return k
}

// change is l with an edit; nil if no chain is left. l may be nil.
func (s *step) changeListener(l *listener, e *listenerEdit) *listener {
	if l == nil {
		l = &listener{}
	}
	next := *l
	if next.open = e.open.Apply(l.open); len(e.open) > 0 {
		e.units.Drop(openUnit)
		if k, ok := s.openChain(next.open); ok {
			e.units.Put(openUnit, s.unit(openUnit, k))
		}
	}
	var old, now []*chainUnit
	names := chunked.Edits[*chainUnit]{}
	for key, u := range e.units {
		if had, ok := l.units.Get(key); ok {
			old = append(old, had)
			for _, n := range had.serverNames {
				names.Drop(indexKey(n, key))
			}
		}
		if u != nil {
			now = append(now, u)
			for _, n := range u.serverNames {
				names.Put(indexKey(n, key), u)
			}
		}
	}
	next.units, next.names = e.units.Apply(l.units), names.Apply(l.names)
	next.decide(l, old, now)
	if next.chains.Len() == 0 && next.units.Len() == 0 {
		return nil
	}
	return &next
}

// decide works out which units have their chains in l after those of old went and those of now came.
func (l *listener) decide(before *listener, old, now []*chainUnit) {
	active, chains := chunked.Edits[*chainUnit]{}, chunked.Edits[*encodecache.Fragment]{}
	touched := map[string]struct{}{}
	remove := func(u *chainUnit) {
		active.Drop(indexKey(u.chain, u.key))
		touched[u.chain] = struct{}{}
	}
	put := func(u *chainUnit) {
		active.Put(indexKey(u.chain, u.key), u)
		touched[u.chain] = struct{}{}
	}
	for _, u := range old {
		remove(u)
	}
	rivals := l.rivals(old, now)
	taken := map[string]struct{}{}
	for _, u := range rivals {
		if take(taken, u.serverNames) {
			put(u)
		} else {
			remove(u)
		}
	}
	for _, u := range now {
		if len(u.serverNames) == 0 {
			put(u)
		}
	}
	l.active = active.Apply(before.active)
	for c := range touched {
		chains.Drop(c)
		for _, u := range below(l.active, c) {
			if len(u.fragment.Bytes()) > 0 { // else it is left out
				chains.Put(c, u.fragment)
			}
			break
		}
	}
	l.chains = chains.Apply(before.chains)
}

// rivals returns the units that share an SNI name with one of old or now, directly or by way of other units, in their
// order.
func (l *listener) rivals(old, now []*chainUnit) (out []*chainUnit) {
	seen, known := map[*chainUnit]struct{}{}, map[string]struct{}{}
	queue := slices.Concat(old, now)
	for _, u := range now {
		if seen[u] = struct{}{}; len(u.serverNames) > 0 {
			out = append(out, u)
		}
	}
	for len(queue) > 0 {
		u := queue[0]
		queue = queue[1:]
		for _, n := range u.serverNames {
			if _, ok := known[n]; ok {
				continue
			}
			known[n] = struct{}{}
			for _, o := range below(l.names, n) {
				if _, ok := seen[o]; !ok {
					seen[o] = struct{}{}
					queue, out = append(queue, o), append(out, o)
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b *chainUnit) int { return strings.Compare(a.key, b.key) })
	return out
}

// take puts names into taken. If one is taken already it changes nothing and returns false, for Envoy refuses a
// listener of which two chains have the same name.
func take(taken map[string]struct{}, names []string) bool {
	for _, n := range names {
		if _, ok := taken[n]; ok {
			return false
		}
	}
	for _, n := range names {
		taken[n] = struct{}{}
	}
	return true
}

// entry is the listener at an address; nil if the router cannot listen there or nothing leads anywhere.
func (s *step) listenerEntry(at bindPort) *encodecache.Entry {
	l := s.listener(at)
	if l == nil || l.chains.Len() == 0 || !s.sc.Traits.MayBind(at.port) {
		return nil
	}
	k := s.header(at)
	for range below(l.chains, tlsChain) {
		k.TLS = true
		break
	}
	return outbound.ComposeOf(
		xdstype.ListenerURL,
		k.Name(),
		[2]*encodecache.Fragment{s.tables.listeners.Get(k)},
		l.chains,
	)
}
