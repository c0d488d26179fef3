package snapshot

import (
	"fmt"
	"iter"
	"strings"

	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Snapshot is an immutable view of all values but endpoints, with the indexes that planning asks. Every query is a
// lookup or a walk over what it returns; none walks the mesh.
type Snapshot struct {
	// Revision grows with each Snapshot.
	Revision uint64
	// Mesh is never nil once the first Snapshot is built.
	Mesh *value.Mesh

	objects     objectIndex
	projections chunked.Map[*value.Projection] // by ServiceKey.String()

	services  serviceIndex
	ports     portIndex
	virtual   virtualIndex
	patterns  patternIndex
	rules     ruleIndex
	selectors selectorIndex
	selected  selectedIndex
	locality  localityIndex
	peers     peerIndex
}

// sep joins the parts of an index key. It sorts before every character that names contain, so that the keys with a
// common first part are neighbours.
const sep = "\x00"

func key(parts ...string) string { return strings.Join(parts, sep) }

// under yields the values whose key starts with prefix and sep, in order.
func under[V comparable](m chunked.Map[V], prefix string) iter.Seq[V] {
	return func(yield func(V) bool) {
		prefix := prefix + sep
		for k, v := range m.From(prefix) {
			if !strings.HasPrefix(k, prefix) || !yield(v) {
				return
			}
		}
	}
}

// Namespace returns the namespace of that name, or nil.
func (s *Snapshot) Namespace(name string) *value.Namespace { return Get[*value.Namespace](s, "", name) }

// Projection returns what is known here of a service's endpoints; never nil.
func (s *Snapshot) Projection(k value.ServiceKey) *value.Projection {
	if p := s.KnownProjection(k); p != nil {
		return p
	}
	return &value.Projection{}
}

// KnownProjection works like Projection, but returns nil where there are no endpoints.
func (s *Snapshot) KnownProjection(k value.ServiceKey) *value.Projection {
	p, _ := s.projections.Get(k.String())
	return p
}

// Service returns the service of that host in that namespace, or nil.
func (s *Snapshot) Service(k value.ServiceKey) *value.Service {
	svc, _ := s.services.byHost.Get(key(k.Host, k.Namespace))
	return svc
}

// Services yields all services by host, then namespace.
func (s *Snapshot) Services() iter.Seq[*value.Service] {
	return func(yield func(*value.Service) bool) {
		for _, svc := range s.services.byHost.All() {
			if !yield(svc) {
				return
			}
		}
	}
}

// ServicesOfHost yields the services of one host, by namespace.
func (s *Snapshot) ServicesOfHost(host string) iter.Seq[*value.Service] {
	return under(s.services.byHost, host)
}

// ServicesIn yields the services of a namespace, by host.
func (s *Snapshot) ServicesIn(namespace string) iter.Seq[*value.Service] {
	return under(s.services.byNamespace, namespace)
}

// ServicesOnPort yields the services that have a port of that number, by host, then namespace.
func (s *Snapshot) ServicesOnPort(port int) iter.Seq[*value.Service] {
	return under(s.services.byPort, portKey(port))
}

// ServicesAt yields the services that have that address (an IP or CIDR as the object has it), by host, then namespace.
func (s *Snapshot) ServicesAt(address string) iter.Seq[*value.Service] {
	return under(s.services.byAddress, address)
}

// AliasesOf yields the ExternalName services whose target is host.
func (s *Snapshot) AliasesOf(host string) iter.Seq[*value.Service] {
	return under(s.services.byAlias, host)
}

// Ports yields the numbers of all ports that any service has, in order.
func (s *Snapshot) Ports() iter.Seq[int] {
	return func(yield func(int) bool) {
		start := ""
		for {
			next, ok := first(s.services.byPort, start)
			if !ok {
				return
			}
			var port int
			fmt.Sscanf(next, "%05d", &port)
			if !yield(port) {
				return
			}
			start = next[:5] + "\x01"
		}
	}
}

func first[V comparable](m chunked.Map[V], start string) (string, bool) {
	for k := range m.From(start) {
		return k, true
	}
	return "", false
}

// Gateways yields all Gateways by namespace and name.
func (s *Snapshot) Gateways() iter.Seq[*value.Gateway] { return All[*value.Gateway](s) }

// Gateway returns the Gateway of that namespace and name, or nil.
func (s *Snapshot) Gateway(namespace, name string) *value.Gateway {
	return Get[*value.Gateway](s, namespace, name)
}

// SidecarsIn yields the Sidecars of a namespace, by name.
func (s *Snapshot) SidecarsIn(namespace string) iter.Seq[*value.Sidecar] {
	return In[*value.Sidecar](s, namespace)
}

func values[V comparable](m chunked.Map[V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range m.All() {
			if !yield(v) {
				return
			}
		}
	}
}

// Counts returns the numbers of objects by kind, for metrics; services are counted by host and namespace.
func (s *Snapshot) Counts() map[value.Kind]int {
	out := map[value.Kind]int{value.KindService: s.services.byHost.Len()}
	for kind, all := range s.objects {
		out[kind] = all.Len()
	}
	return out
}
