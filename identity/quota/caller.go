package quota

import (
	"net"
	"net/netip"

	"github.com/pilotd/pilotd/identity"
)

// network is how many bits of an IPv6 address identify a caller: whoever has one address has the whole /64.
const network = 64

// Caller is the party that is charged. Callers are comparable; the zero Caller stands for everybody of whom nothing is
// known.
type Caller struct {
	who  identity.Identity
	pod  string // the UID of its pod; empty where that makes no difference
	from netip.Addr
}

// Of returns the caller with the identity or, if that is empty, with the address.
func Of(who identity.Identity, addr net.Addr) Caller {
	if who != (identity.Identity{}) {
		return Caller{who: who}
	}
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return Caller{}
	}
	from := tcp.AddrPort().Addr().Unmap().WithZone("")
	if from.Is6() {
		if p, err := from.Prefix(network); err == nil {
			from = p.Addr()
		}
	}
	return Caller{from: from}
}

// OfPod returns the caller with the identity in one pod, of an identity whose pods are charged one by one.
func OfPod(who identity.Identity, pod identity.Pod) Caller { return Caller{who: who, pod: pod.UID} }

// String returns the identity, or the address.
func (c Caller) String() string {
	switch {
	case c.who != identity.Identity{}:
		return c.who.String()
	case c.from.IsValid():
		return c.from.String()
	}
	return "an unknown caller"
}
