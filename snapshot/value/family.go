package value

import (
	"net/netip"
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
