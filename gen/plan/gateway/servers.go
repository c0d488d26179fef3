package gateway

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// server is one server of a Gateway, at one port of the router's own. Immutable; one that did not change keeps
// its pointer.
type server struct {
	*value.Server
	// gateway is "namespace/name".
	gateway string
	// owner is the same without its age.
	owner value.Meta
	// rank orders servers as conflicts are decided: the oldest Gateway's first, in each as they stand there.
	rank string
	// port is where the router listens; Server.Port is where clients call.
	port int
	// route is the name of its route configuration; empty if it serves no HTTP.
	route string
	asks  []*serverHost
}

// serverHost is one host of a server: a name or a pattern, for VirtualServices of a namespace, or of all ("*").
type serverHost struct {
	server          *server
	namespace, host string
	key             string // tells it from the others of its server
}

// takes reports whether a host of a server is for VirtualServices of that namespace.
func (h *serverHost) takes(vs *value.VirtualService) bool {
	return h.namespace == "*" || h.namespace == vs.Namespace
}

// bindPort is where a listener listens.
type bindPort struct {
	bind string
	port int
}

func (s *server) at() bindPort { return bindPort{s.Bind, s.port} }

// rankOf returns the common first part of the ranks of a Gateway's servers.
func rankOf(gw *value.Gateway) string {
	return indexKey(fmt.Sprintf("%012d", gw.Created), gw.Name, gw.Namespace)
}

// indexSep joins the parts of an index key; it sorts before all characters of names.
const indexSep = "\x00"

func indexKey(parts ...string) string { return strings.Join(parts, indexSep) }

// below yields the items whose key starts with prefix and a further part, in order.
func below[V comparable](m chunked.Map[V], prefix string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		prefix := prefix + indexSep
		for k, v := range m.From(prefix) {
			if !strings.HasPrefix(k, prefix) || !yield(k, v) {
				return
			}
		}
	}
}

// serversOf returns the servers of a Gateway at the router's own ports; those that were there before, under the same
// rank, are taken over.
func serversOf(sc *scope.Scope, gw *value.Gateway, before []*server) []*server {
	if gw == nil {
		return nil
	}
	rank := rankOf(gw)
	byName := map[string]*server{}
	for _, s := range before {
		byName[s.Port.Name] = s
	}
	out := make([]*server, len(gw.Servers))
	for i, spec := range gw.Servers {
		var had *server
		if had = byName[spec.Port.Name]; i < len(before) &&
			before[i].Port.Name == spec.Port.Name {
			had = before[i]
		}
		at := indexKey(rank, fmt.Sprintf("%05d", i))
		if had != nil && had.Server.Equal(spec) {
			if had.rank == at {
				out[i] = had
				continue
			}
			spec = had.Server // what is made of it is found by its pointers
		}
		out[i] = newServer(gw, spec, at, ownPort(&sc.Facts, spec.Port.Number))
	}
	return out
}

func newServer(gw *value.Gateway, spec *value.Server, rank string, port int) *server {
	s := &server{Server: spec, gateway: gw.Namespace + "/" + gw.Name, owner: ownerOf(gw.Meta),
		rank: rank, port: port}
	switch {
	case s.Port.Protocol.IsHTTP():
		s.route = "http." + strconv.Itoa(s.port)
	case s.terminatesHTTPS():
		s.route = strings.Join([]string{"https", strconv.Itoa(s.Port.Number), s.Port.Name, gw.Name,
			gw.Namespace}, ".")
	}
	if s.route != "" && s.Bind != "" {
		s.route += "." + s.Bind
	}
	for i, h := range s.Hosts {
		s.asks = append(s.asks, &serverHost{s, h.Namespace, h.Host, indexKey(rank, fmt.Sprintf("%05d", i))})
	}
	return s
}

func (s *server) terminatesHTTPS() bool {
	return s.Port.Protocol == value.HTTPS && s.TLS != nil && !s.passthrough()
}

// passthrough reports whether the server leaves TLS to the backends.
func (s *server) passthrough() bool {
	return s.TLS != nil && s.TLS.Mode == value.PassthroughTLS
}

// routesAlike reports whether two servers have the same routes.
func (s *server) routesAlike(o *server) bool {
	return s.route == o.route && s.gateway == o.gateway && s.rank == o.rank && s.profile() == o.profile() &&
		s.Redirect == o.Redirect &&
		slices.Equal(s.Hosts, o.Hosts)
}

// profile returns what the routes of a VirtualService depend on about the server that has them.
func (s *server) profile() string {
	return indexKey(strconv.Itoa(s.Port.Number), strconv.FormatBool(s.TLS != nil))
}

// sniNames returns the server names that the one chain of a server that ends TLS takes: "*" for all. Of two Gateways
// that ask for one name for VirtualServices of different namespaces the first has it, for Envoy refuses a listener in
// which two chains take the same connections.
func (s *server) sniNames() []string {
	names := gen.ServerNames(s.sniHosts())
	if names == "" {
		return []string{"*"}
	}
	return strings.Split(names, ",")
}

// sniHosts returns the host names of a server, without namespaces.
func (s *server) sniHosts() []string {
	out := make([]string, 0, len(s.asks))
	for _, h := range s.asks {
		out = append(out, h.host)
	}
	return out
}

// ownerOf returns a Meta without the age, as Keys name objects.
func ownerOf(m value.Meta) value.Meta { return value.Meta{Namespace: m.Namespace, Name: m.Name} }
