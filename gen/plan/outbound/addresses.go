package outbound

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// View is the services that a scope sees in a Snapshot, as its outbound listeners ask for them.
type View struct {
	t  *Tables
	n  *snapshot.Snapshot
	sc *scope.Scope
}

// View returns the View of a scope and a Snapshot.
func (t *Tables) View(n *snapshot.Snapshot, sc *scope.Scope) View { return View{t, n, sc} }

// AddressAt returns the address bind, which is not the wildcard.
func AddressAt(bind string) ListenerAddress { return ListenerAddress{Bind: bind} }

// PortOf returns a port for a listener to serve svc at: port, whatever ports svc declares.
func PortOf(svc *value.Service, port *value.Port) ServicePort { return ServicePort{svc, port, ""} }

// ListenerAddress is an address at which connections to a service's port arrive.
type ListenerAddress struct {
	// Bind is the address; also has further ones that belong to the same listener, joined by commas.
	Bind, also string
	Wildcard   bool
	// ranges is the service's address where that is a range of addresses; the service's chain then takes connections to
	// this range alone.
	ranges string
}

// ServicePort is a port of a service that a listener is to serve; ranges is as in ListenerAddress.
type ServicePort struct {
	service *value.Service
	port    *value.Port
	ranges  string
}

// Everywhere returns the wildcard address of the proxy's families.
func (v View) Everywhere() ListenerAddress {
	return v.families("0.0.0.0", "::")
}

// Loopback returns where a proxy without interception is to be dialed.
func (v View) Loopback() ListenerAddress {
	p := v.families("127.0.0.1", "::1")
	p.Wildcard = false
	return p
}

func (v View) families(v4, v6 string) ListenerAddress {
	switch {
	case v.sc.Traits.IPv4 && v.sc.Traits.IPv6:
		return ListenerAddress{Bind: v4, also: v6, Wildcard: true}
	case v.sc.Traits.IPv6:
		return ListenerAddress{Bind: v6, Wildcard: true}
	}
	return ListenerAddress{Bind: v4, Wildcard: true}
}

// addressesOf returns the addresses of the listeners that serve a port that is not HTTP.
func (v View) addressesOf(svc *value.Service, p *value.Port) []ListenerAddress {
	if members, ok := v.members(svc, p); ok {
		return members
	}
	if len(svc.Addresses) == 0 {
		return []ListenerAddress{v.Everywhere()}
	}
	if svc.Registry == value.RegistryKubernetes {
		return []ListenerAddress{{Bind: v.ownFamily(svc.Addresses)}}
	}
	var out []ListenerAddress
	for _, a := range svc.Addresses {
		at := ListenerAddress{Bind: a}
		if strings.Contains(at.Bind, "/") {
			at = v.Everywhere()
			at.ranges = a
		}
		out = append(out, at)
	}
	return out
}

// ownFamily returns the first address of a family that the proxy has, else the first.
func (v View) ownFamily(addresses []string) string {
	for _, a := range addresses {
		if v4, v6 := value.Families([]string{a}); v4 && v.sc.Traits.IPv4 || v6 && v.sc.Traits.IPv6 {
			return a
		}
	}
	return addresses[0]
}

// members returns the endpoints of a service whose connections go to the endpoints' own addresses. ok is false for any
// other service: also for a ServiceEntry that names no endpoints, for it means all addresses.
func (v View) members(svc *value.Service, p *value.Port) (out []ListenerAddress, ok bool) {
	if !svc.ByMember() {
		return nil, false
	}
	for _, e := range v.n.Projection(svc.ServiceKey).Inline {
		if !e.Serves(p) || slices.ContainsFunc(e.Addresses,
			func(a string) bool { _, err := netip.ParseAddr(a); return err != nil }) {
			continue
		}
		at := ListenerAddress{Bind: e.Addresses[0], also: strings.Join(e.Addresses[1:], ",")}
		if !slices.ContainsFunc(out, func(o ListenerAddress) bool { return o.Bind == at.Bind }) {
			out = append(out, at)
		}
	}
	if len(out) == 0 && svc.Registry == value.RegistryExternal && svc.Selector == nil {
		return nil, false
	}
	return out, true
}
