package plan

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// outboundView is the services that a scope sees, as its outbound listeners ask for them.
type outboundView struct {
	t  *Tables
	n  *snapshot.Snapshot
	sc *scope.Scope
}

// place is where connections to a service's port arrive.
type place struct {
	// bind is the address, also further ones that belong to the same listener, joined by commas.
	bind, also string
	wildcard   bool
	// ranges is the service's address, where that is a range: its chain takes only connections to it.
	ranges string
}

// portClaim is a port of a service that wants to be listened for at a place.
type portClaim struct {
	service *value.Service
	port    *value.Port
	ranges  string
}

// everywhere is the wildcard address of the proxy's families.
func (v outboundView) everywhere() place {
	return v.families("0.0.0.0", "::")
}

// loopback is where a proxy without interception is to be dialed.
func (v outboundView) loopback() place {
	p := v.families("127.0.0.1", "::1")
	p.wildcard = false
	return p
}

func (v outboundView) families(v4, v6 string) place {
	switch {
	case v.sc.Traits.IPv4 && v.sc.Traits.IPv6:
		return place{bind: v4, also: v6, wildcard: true}
	case v.sc.Traits.IPv6:
		return place{bind: v6, wildcard: true}
	}
	return place{bind: v4, wildcard: true}
}

// placesOf are the places at which a port that is not HTTP is listened for.
func (v outboundView) placesOf(svc *value.Service, p *value.Port) []place {
	if members, ok := v.members(svc, p); ok {
		return members
	}
	if len(svc.Addresses) == 0 {
		return []place{v.everywhere()}
	}
	if svc.Registry == value.RegistryKubernetes {
		return []place{{bind: v.ownFamily(svc.Addresses)}}
	}
	var out []place
	for _, a := range svc.Addresses {
		at := place{bind: a}
		if strings.Contains(at.bind, "/") {
			at = v.everywhere()
			at.ranges = a
		}
		out = append(out, at)
	}
	return out
}

// ownFamily is the first address of a family that the proxy has, else the first.
func (v outboundView) ownFamily(addresses []string) string {
	for _, a := range addresses {
		if v4, v6 := value.Families([]string{a}); v4 && v.sc.Traits.IPv4 || v6 && v.sc.Traits.IPv6 {
			return a
		}
	}
	return addresses[0]
}

// members are the endpoints of a service whose connections go to the endpoints' own addresses. ok is false for any
// other service: also for a ServiceEntry that names no endpoints, for it means all addresses.
func (v outboundView) members(svc *value.Service, p *value.Port) (out []place, ok bool) {
	if !svc.ByMember() {
		return nil, false
	}
	for _, e := range v.n.Projection(svc.ServiceKey).Inline {
		if !e.Serves(p) || slices.ContainsFunc(e.Addresses,
			func(a string) bool { _, err := netip.ParseAddr(a); return err != nil }) {
			continue
		}
		at := place{bind: e.Addresses[0], also: strings.Join(e.Addresses[1:], ",")}
		if !slices.ContainsFunc(out, func(o place) bool { return o.bind == at.bind }) {
			out = append(out, at)
		}
	}
	if len(out) == 0 && svc.Registry == value.RegistryExternal && svc.Selector == nil {
		return nil, false
	}
	return out, true
}
