package outbound

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// outboundView is the services that a scope sees, as its outbound listeners ask for them.
type View struct {
	t  *Tables
	n  *snapshot.Snapshot
	sc *scope.Scope
}

// View is the services that a scope sees in a Snapshot, as its outbound listeners ask for them.
func (t *Tables) View(n *snapshot.Snapshot, sc *scope.Scope) View { return View{t, n, sc} }

// PlaceAt is an address of its own.
func PlaceAt(bind string) Place { return Place{Bind: bind} }

// Claim is the claim of a service to be listened for, as one that has the given port.
func Claim(svc *value.Service, port *value.Port) PortClaim { return PortClaim{svc, port, ""} }

// Place is where connections to a service's port arrive.
type Place struct {
	// bind is the address, also further ones that belong to the same listener, joined by commas.
	Bind, also string
	Wildcard   bool
	// ranges is the service's address, where that is a range: its chain takes only connections to it.
	ranges string
}

// PortClaim is a port of a service that wants to be listened for at a place.
type PortClaim struct {
	service *value.Service
	port    *value.Port
	ranges  string
}

// Everywhere is the wildcard address of the proxy's families.
func (v View) Everywhere() Place {
	return v.families("0.0.0.0", "::")
}

// Loopback is where a proxy without interception is to be dialed.
func (v View) Loopback() Place {
	p := v.families("127.0.0.1", "::1")
	p.Wildcard = false
	return p
}

func (v View) families(v4, v6 string) Place {
	switch {
	case v.sc.Traits.IPv4 && v.sc.Traits.IPv6:
		return Place{Bind: v4, also: v6, Wildcard: true}
	case v.sc.Traits.IPv6:
		return Place{Bind: v6, Wildcard: true}
	}
	return Place{Bind: v4, Wildcard: true}
}

// placesOf are the places at which a port that is not HTTP is listened for.
func (v View) placesOf(svc *value.Service, p *value.Port) []Place {
	if members, ok := v.members(svc, p); ok {
		return members
	}
	if len(svc.Addresses) == 0 {
		return []Place{v.Everywhere()}
	}
	if svc.Registry == value.RegistryKubernetes {
		return []Place{{Bind: v.ownFamily(svc.Addresses)}}
	}
	var out []Place
	for _, a := range svc.Addresses {
		at := Place{Bind: a}
		if strings.Contains(at.Bind, "/") {
			at = v.Everywhere()
			at.ranges = a
		}
		out = append(out, at)
	}
	return out
}

// ownFamily is the first address of a family that the proxy has, else the first.
func (v View) ownFamily(addresses []string) string {
	for _, a := range addresses {
		if v4, v6 := value.Families([]string{a}); v4 && v.sc.Traits.IPv4 || v6 && v.sc.Traits.IPv6 {
			return a
		}
	}
	return addresses[0]
}

// members are the endpoints of a service whose connections go to the endpoints' own addresses. ok is false for any
// other service: also for a ServiceEntry that names no endpoints, for it means all addresses.
func (v View) members(svc *value.Service, p *value.Port) (out []Place, ok bool) {
	if !svc.ByMember() {
		return nil, false
	}
	for _, e := range v.n.Projection(svc.ServiceKey).Inline {
		if !e.Serves(p) || slices.ContainsFunc(e.Addresses,
			func(a string) bool { _, err := netip.ParseAddr(a); return err != nil }) {
			continue
		}
		at := Place{Bind: e.Addresses[0], also: strings.Join(e.Addresses[1:], ",")}
		if !slices.ContainsFunc(out, func(o Place) bool { return o.Bind == at.Bind }) {
			out = append(out, at)
		}
	}
	if len(out) == 0 && svc.Registry == value.RegistryExternal && svc.Selector == nil {
		return nil, false
	}
	return out, true
}
