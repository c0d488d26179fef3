package capture

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// everywhere returns the range of all addresses of a family.
func everywhere(v6 bool) (family int, all *net.IPNet) {
	if v6 {
		return unix.AF_INET6, &net.IPNet{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}
	}
	return unix.AF_INET, &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}
}

// routeMarked adds the routes that keep marked packets inside the pod, whatever their destination.
func routeMarked(c Config, v6 bool) error {
	if err := unrouteMarked(c, v6); err != nil {
		return err
	}
	family, all := everywhere(v6)
	lo, err := netlink.LinkByName(loopback)
	if err != nil {
		return fmt.Errorf("interface %s: %w", loopback, err)
	}
	if err := netlink.RuleAdd(markRule(c, family)); err != nil {
		return fmt.Errorf("rule of routing for mark %d: %w", c.Mark, err)
	}
	if err := netlink.RouteReplace(&netlink.Route{LinkIndex: lo.Attrs().Index, Dst: all, Table: int(c.RouteTable),
		Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST}); err != nil {
		return fmt.Errorf("route in table %d: %w", c.RouteTable, err)
	}
	return nil
}

// unrouteMarked deletes the routes that routeMarked adds. It is no error if there are none.
func unrouteMarked(c Config, v6 bool) error {
	family, all := everywhere(v6)
	for {
		err := netlink.RuleDel(markRule(c, family))
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) {
			break
		}
		if err != nil {
			return fmt.Errorf("rule of routing for mark %d: %w", c.Mark, err)
		}
	}
	err := netlink.RouteDel(&netlink.Route{Dst: all, Table: int(c.RouteTable), Type: unix.RTN_LOCAL,
		Scope: netlink.SCOPE_HOST})
	if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("route in table %d: %w", c.RouteTable, err)
	}
	return nil
}

func markRule(c Config, family int) *netlink.Rule {
	r := netlink.NewRule()
	r.Family, r.Mark, r.Table = family, c.Mark, int(c.RouteTable)
	return r
}

// routeText returns the ip commands that do the same as routeMarked.
func routeText(c Config, v6 bool) string {
	if c.Mode != modeTransparent {
		return ""
	}
	ip, all := "ip", "0.0.0.0/0"
	if v6 {
		ip, all = "ip -6", "::/0"
	}
	return fmt.Sprintf("# %[1]s rule add fwmark %[2]d lookup %[3]d\n# %[1]s route add local %[4]s dev lo table %[3]d\n",
		ip, c.Mark, c.RouteTable, all)
}
