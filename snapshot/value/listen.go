package value

import (
	"net/netip"
	"slices"
	"strings"
)

// Families reports which address families are among addresses. What is no IP address is of none.
func Families(addresses []string) (v4, v6 bool) {
	for _, a := range addresses {
		ip, err := netip.ParseAddr(strings.TrimSpace(a))
		v4, v6 = v4 || err == nil && ip.Unmap().Is4(), v6 || err == nil && !ip.Unmap().Is4()
	}
	return v4, v6
}

// AnyAddress returns the address at which the proxy listens for connections to all addresses of its first family.
func (t Traits) AnyAddress() string {
	if t.IPv6 && !t.IPv4 {
		return "::"
	}
	return "0.0.0.0"
}

// Binds reports whether the proxy really binds a port that a Sidecar object declares with a capture mode. It gets
// intercepted connections to other ports.
func (t Traits) Binds(mode CaptureMode) bool {
	if mode == CaptureDefault {
		return t.Interception == NoInterception
	}
	return mode == CaptureNone
}

// OwnsPort reports whether a port of all addresses of a workload belongs to its proxy: to one of the two virtual
// listeners, readiness, or metrics.
func (m *Mesh) OwnsPort(port int) bool {
	switch port {
	case m.OutboundPort, m.InboundPort, 15021, 15090:
		return true
	}
	return false
}

// ProtocolNamed returns the protocol that the port of a Sidecar or a Gateway declares, in any case; not ok if the name
// is unknown.
func ProtocolNamed(name string) (p Protocol, ok bool) {
	for _, p := range []Protocol{HTTP, HTTP2, GRPC, GRPCWeb, HTTPS, TCP, TLS, UDP, Mongo, Redis, MySQL} {
		if strings.EqualFold(name, string(p)) {
			return p, true
		}
	}
	return Auto, false
}

// OwnsAddress reports whether a service may have listeners at addresses of its own.
func (s *Service) OwnsAddress() bool {
	return s.ByMember() || slices.ContainsFunc(s.Addresses, func(a string) bool { return !isRange(a) })
}

// SharesAddress reports whether a service may be among those that are listened for at the wildcard address.
func (s *Service) SharesAddress() bool {
	return len(s.Addresses) == 0 && !s.Headless || slices.ContainsFunc(s.Addresses, isRange)
}

// isRange reports whether an address stands for several.
func isRange(address string) bool { return strings.Contains(address, "/") }
