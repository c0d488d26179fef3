package capture

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Modes of inbound traffic: REDIRECT rewrites its destination to the proxy's port, TPROXY hands it to the proxy with
// its destination unchanged, and NONE captures nothing at all.
const (
	modeRedirect    = "REDIRECT"
	modeTransparent = "TPROXY"
	modeNone        = "NONE"
)

// Config selects which traffic is captured. Lists are comma-separated as on the command line; "*" means all.
type Config struct {
	// OutboundPort and InboundPort are the proxy's ports. Inbound traffic to TunnelPort is never captured. DNSPort is
	// the port of the agent's DNS proxy.
	OutboundPort, InboundPort, TunnelPort, DNSPort uint16
	// UIDs and GIDs are the users and groups that the proxy runs as, whose traffic is not captured. Empty GIDs means
	// the same numbers as UIDs.
	UIDs, GIDs string
	// OwnerGroups are the numbers of the groups whose processes' outbound traffic is captured; empty or "*" means all.
	// ExcludeOwnerGroups are exceptions from them.
	OwnerGroups, ExcludeOwnerGroups string
	// Mode is REDIRECT, TPROXY or NONE.
	Mode string
	// Mark and RouteTable are for TPROXY: the mark of the proxy's packets, and the routing table for packets with that
	// mark.
	Mark, RouteTable uint32
	// IncludeRanges and ExcludeRanges are destination addresses; IncludePorts and ExcludePorts are destination ports.
	IncludeRanges, ExcludeRanges, IncludePorts, ExcludePorts string
	// InboundPorts are the ports whose inbound traffic is captured, except ExcludeInboundPorts.
	InboundPorts, ExcludeInboundPorts string
	// VirtualInterfaces are interfaces whose inbound packets count as outbound traffic of the application (those of
	// virtual machines in the pod). Traffic of ExcludeInterfaces is not captured.
	VirtualInterfaces, ExcludeInterfaces string
	// DNS captures queries to Nameservers; AllDNS captures queries to any server.
	DNS, AllDNS bool
	Nameservers []netip.Addr
	// DropInvalid drops packets that belong to no known connection.
	DropInvalid bool
	// IPv6 also writes rules for IPv6.
	IPv6 bool
}

// parsed is a Config after its lists were parsed.
type parsed struct {
	Config
	uids, gids                        []uint32
	owners, excludeOwners             []uint32
	includeAll                        bool
	include, exclude                  []netip.Prefix
	includePorts, excludePorts        []uint16
	inboundAll                        bool
	inbound, excludeInbound           []uint16
	virtualInterfaces, leftInterfaces []string
}

// parse parses the lists of a Config.
func (c Config) parse() (p *parsed, err error) {
	p = &parsed{Config: c, virtualInterfaces: list(c.VirtualInterfaces), leftInterfaces: list(c.ExcludeInterfaces)}
	if c.Mode != modeRedirect && c.Mode != modeTransparent && c.Mode != modeNone {
		return nil, fmt.Errorf("mode %q: want %s, %s or %s", c.Mode, modeRedirect, modeTransparent, modeNone)
	}
	if c.Mode == modeTransparent && (c.Mark == 0 || c.RouteTable == 0) {
		return nil, fmt.Errorf("mode %s: want a mark and a table of routes, numbers of at least 1", c.Mode)
	}
	if c.OutboundPort == 0 || c.InboundPort == 0 || c.DNS && c.DNSPort == 0 {
		return nil, fmt.Errorf("ports of the proxy: want numbers from 1 to 65535")
	}
	if p.uids, err = numbers(c.UIDs); err != nil {
		return nil, fmt.Errorf("users of the proxy: %w", err)
	}
	if p.gids, err = numbers(c.GIDs); err != nil {
		return nil, fmt.Errorf("groups of the proxy: %w", err)
	}
	if len(p.uids) == 0 {
		return nil, fmt.Errorf("users of the proxy: want at least one: its own traffic would come back to it for ever")
	}
	if len(p.gids) == 0 {
		p.gids = p.uids
	}
	if strings.TrimSpace(c.OwnerGroups) != "*" {
		if p.owners, err = numbers(c.OwnerGroups); err != nil {
			return nil, fmt.Errorf("groups that are captured: %w", err)
		}
	}
	if p.excludeOwners, err = numbers(c.ExcludeOwnerGroups); err != nil {
		return nil, fmt.Errorf("groups that are not captured: %w", err)
	}
	if p.includeAll, p.include, err = ranges(c.IncludeRanges, true); err != nil {
		return nil, fmt.Errorf("outbound ranges: %w", err)
	}
	if _, p.exclude, err = ranges(c.ExcludeRanges, false); err != nil {
		return nil, fmt.Errorf("excluded outbound ranges: %w", err)
	}
	p.inboundAll = strings.TrimSpace(c.InboundPorts) == "*"
	inbound := c.InboundPorts
	if p.inboundAll {
		inbound = ""
	}
	for _, l := range []struct {
		what, text string
		to         *[]uint16
	}{{"outbound ports", c.IncludePorts, &p.includePorts}, {"excluded outbound ports", c.ExcludePorts, &p.excludePorts},
		{"inbound ports", inbound, &p.inbound}, {"excluded inbound ports", c.ExcludeInboundPorts, &p.excludeInbound}} {
		if *l.to, err = ports(l.text); err != nil {
			return nil, fmt.Errorf("%s: %w", l.what, err)
		}
	}
	for _, name := range append(p.virtualInterfaces, p.leftInterfaces...) {
		if len(name) >= interfaceName {
			return nil, fmt.Errorf("interface %q: want a name of at most %d letters", name, interfaceName-1)
		}
	}
	return p, nil
}

// list splits a comma-separated list.
func list(text string) (out []string) {
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one != "" {
			out = append(out, one)
		}
	}
	return out
}

func numbers(text string) (out []uint32, err error) {
	for _, one := range list(text) {
		n, err := strconv.ParseUint(one, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%q: want numbers", one)
		}
		out = append(out, uint32(n))
	}
	return out, nil
}

func ports(text string) (out []uint16, err error) {
	for _, one := range list(text) {
		n, err := strconv.ParseUint(one, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("%q: want numbers from 0 to 65535", one)
		}
		out = append(out, uint16(n))
	}
	return out, nil
}

// ranges parses addresses and address ranges. "*" alone means all, if mayAll is set.
func ranges(text string, mayAll bool) (all bool, out []netip.Prefix, err error) {
	for _, one := range list(text) {
		if one == "*" && mayAll && len(list(text)) == 1 {
			return true, nil, nil
		}
		p, err := netip.ParsePrefix(one)
		if a, aerr := netip.ParseAddr(one); err != nil && aerr == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil {
			return false, nil, fmt.Errorf("%q: want a range such as 10.0.0.0/8", one)
		}
		out = append(out, p.Masked())
	}
	return false, out, nil
}
