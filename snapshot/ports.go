package snapshot

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// PortClass says how a service wants one of its ports to be listened for where others have the same.
type PortClass byte

// The classes. A service that has a port at an address of its own and in no other way is in none.
const (
	// PublicHTTP and SomeHTTP are HTTP for the clients of all namespaces, and for those of some.
	PublicHTTP PortClass = 'h'
	SomeHTTP   PortClass = 's'
	// Wild have no address of their own, or a range of addresses, and are not HTTP.
	Wild PortClass = 'w'
	// Aliases are ExternalName services.
	Aliases PortClass = 'a'
)

// portIndex is the services that meet others in the listeners of one port.
type portIndex struct {
	byPort      chunked.Map[*value.Service] // port, class, age, host, namespace
	byNamespace chunked.Map[*value.Service] // namespace, port, class, age, host
	// port, address of an endpoint, host, namespace: services whose connections go to their endpoints
	byMember chunked.Map[*value.Service]
}

// classOf returns the class of a port of a service; 0 for none.
func classOf(s *value.Service, p *value.Port) PortClass {
	switch {
	case p.Protocol == value.UDP:
	case s.Resolution == value.Alias:
		return Aliases
	case p.Protocol.IsHTTP() && s.Export.Public:
		return PublicHTTP
	case p.Protocol.IsHTTP():
		return SomeHTTP
	case len(s.Addresses) == 0 ||
		slices.ContainsFunc(s.Addresses, func(a string) bool { return strings.Contains(a, "/") }):
		return Wild
	}
	return 0
}

// portEdits are the edits of one portIndex.
type portEdits struct{ port, namespace, member editList[*value.Service] }

// with returns x after the change from prev to next, of which the endpoints of services are asked.
func (x portIndex) with(d *Delta, prev, next *Snapshot) portIndex {
	var e portEdits
	for _, c := range d.Services {
		e.claims(c.Old, true)
		e.claims(c.New, false)
		e.members(prev, next, c.Old, c.New)
	}
	for k := range d.Projections {
		if _, done := d.Services[k]; !done {
			s := next.Service(k)
			e.members(prev, next, s, s)
		}
	}
	return portIndex{x.byPort.Apply(e.port), x.byNamespace.Apply(e.namespace), x.byMember.Apply(e.member)}
}

// claims puts the ports of a service in or, of a predecessor, takes them out.
func (e *portEdits) claims(s *value.Service, del bool) {
	if s == nil {
		return
	}
	for _, p := range s.Ports {
		if c := classOf(s, p); c != 0 {
			age := fmt.Sprintf("%012d", s.Created)
			e.port.set(key(portKey(p.Number), string(rune(c)), age, s.Host, s.Namespace), s, del)
			e.namespace.set(key(s.Namespace, portKey(p.Number), string(rune(c)), age, s.Host), s, del)
		}
	}
}

// members replaces the endpoints of a service.
func (e *portEdits) members(prev, next *Snapshot, old, now *value.Service) {
	had := map[string]struct{}{}
	for k := range prev.memberKeys(old) {
		had[k] = struct{}{}
	}
	for k := range next.memberKeys(now) {
		if _, ok := had[k]; !ok || old != now {
			e.member.set(k, now, false)
		}
		delete(had, k)
	}
	for k := range had {
		e.member.remove(k)
	}
}

// memberKeys yields the keys in byMember of a service, which may be nil.
func (s *Snapshot) memberKeys(svc *value.Service) iter.Seq[string] {
	return func(yield func(string) bool) {
		if svc == nil || !svc.ByMember() {
			return
		}
		for _, p := range svc.Ports {
			if classOf(svc, p) != Wild {
				continue
			}
			for a := range s.Members(svc, p) {
				if !yield(key(portKey(p.Number), a, svc.Host, svc.Namespace)) {
					return
				}
			}
		}
	}
}

// Members yields the addresses of the endpoints that a service has at a port; neighbours differ.
func (s *Snapshot) Members(svc *value.Service, p *value.Port) iter.Seq[string] {
	return func(yield func(string) bool) {
		last := ""
		for _, e := range s.Projection(svc.ServiceKey).Inline {
			if !e.Serves(p) || e.Addresses[0] == last {
				continue
			}
			if last = e.Addresses[0]; !yield(last) {
				return
			}
		}
	}
}

// Claims yields the services of one class on a port, oldest first, then by host and namespace.
func (s *Snapshot) Claims(port int, c PortClass) iter.Seq[*value.Service] {
	return under(s.ports.byPort, key(portKey(port), string(rune(c))))
}

// ClaimsIn yields those of one namespace.
func (s *Snapshot) ClaimsIn(namespace string, port int, c PortClass) iter.Seq[*value.Service] {
	return under(s.ports.byNamespace, key(namespace, portKey(port), string(rune(c))))
}

// ClassOn returns the class of a service on a port; 0 for none.
func ClassOn(s *value.Service, port int) PortClass {
	if p := s.PortByNumber(port); p != nil {
		return classOf(s, p)
	}
	return 0
}

// WithMember yields the services that have an endpoint at an address on a port, to which connections go directly, by
// host and namespace.
func (s *Snapshot) WithMember(port int, address string) iter.Seq[*value.Service] {
	return under(s.ports.byMember, key(portKey(port), address))
}
