package check

import (
	"net/netip"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// maxPath is the longest path of a socket: the kernel's structure holds 108 bytes, of which one ends the path.
const maxPath = 107

// address checks an address. names: a host name will do for an IP address.
func (f *faults) address(path string, a *corepb.Address, names bool) {
	switch at := a.GetAddress().(type) {
	case *corepb.Address_SocketAddress:
		s := at.SocketAddress
		if s.GetPortValue() > 65535 {
			f.add(path+".socket_address.port_value", "is %d, at most 65535 is allowed", s.GetPortValue())
		}
		if ip, err := netip.ParseAddr(s.GetAddress()); !names && (err != nil || ip.Zone() != "") {
			f.add(path+".socket_address.address", "%s is no IP address", cut(s.GetAddress()))
		}
	case *corepb.Address_Pipe:
		switch n := len(at.Pipe.GetPath()); {
		case names:
			f.add(path, "is a path, where a name or an IP address is needed")
		case n > maxPath:
			f.add(path+".pipe.path", "has %d bytes, at most %d are allowed", n, maxPath)
		}
	}
}
