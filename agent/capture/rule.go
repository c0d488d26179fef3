package capture

import (
	"fmt"
	"net/netip"
	"strings"
)

// Chains. Those in lower case are the kernel's ways, the others are called from them.
const (
	Prerouting    = "prerouting"
	Output        = "output"
	RawPrerouting = "raw_prerouting"
	RawOutput     = "raw_output"
	Mangle        = "mangle_prerouting"
	MangleOutput  = "mangle_output"
	Inbound       = "ISTIO_INBOUND"
	InRedirect    = "ISTIO_IN_REDIRECT"
	Redirect      = "ISTIO_REDIRECT"
	OutputRules   = "ISTIO_OUTPUT"
)

// interfaceName is how many bytes the kernel has for the name of an interface, with its end.
const interfaceName = 16

// Rule is what happens to packets that fit.
type Rule struct {
	Chain string
	Match Match
	Do    Action
}

// Match is what packets fit that fit each of its fields; a field that is empty fits all.
type Match struct {
	In, Out             string // interface
	Protocol            string // tcp or udp
	Source, Destination netip.Prefix
	NotDestination      bool // packets to other destinations
	Port, SourcePort    uint16
	NotPorts            []uint16
	UID, GID            *uint32
	NotOwner            bool // packets of other users, other groups
	NotGIDs             []uint32
	Invalid             bool // packets that belong to no connection
	Reply               bool // packets of who was connected to
	Mark                uint32
	ConnectionMark      uint32
}

// Action is one of: Verdict, Jump to a chain, redirect to Port, set the connection's Zone, Mark the packet or its
// connection.
type Action struct {
	Verdict string // accept, return, drop
	Jump    string
	Port    uint16
	// Transparent hands a packet to Port as it is: what listens there sees where it was sent to.
	Transparent          bool
	Zone                 uint16
	Mark, ConnectionMark uint32
}

// String is the rule as nft writes it.
func (r Rule) String() string {
	var b strings.Builder
	word := func(format string, args ...any) { fmt.Fprintf(&b, format+" ", args...) }
	m := r.Match
	if m.In != "" {
		word("iifname %q", m.In)
	}
	if m.Out != "" {
		word("oifname %q", m.Out)
	}
	address := func(side string, p netip.Prefix, not bool) {
		if !p.IsValid() {
			return
		}
		family, sign := "ip", ""
		if p.Addr().Is6() {
			family = "ip6"
		}
		if not {
			sign = "!= "
		}
		text := p.String()
		if p.IsSingleIP() {
			text = p.Addr().String()
		}
		word("%s %s %s%s", family, side, sign, text)
	}
	address("saddr", m.Source, false)
	address("daddr", m.Destination, m.NotDestination)
	if m.Protocol != "" {
		word("meta l4proto %s", m.Protocol)
	}
	if m.Port != 0 {
		word("%s dport %d", m.Protocol, m.Port)
	}
	if m.SourcePort != 0 {
		word("%s sport %d", m.Protocol, m.SourcePort)
	}
	for _, p := range m.NotPorts {
		word("%s dport != %d", m.Protocol, p)
	}
	not := ""
	if m.NotOwner {
		not = "!= "
	}
	if m.UID != nil {
		word("meta skuid %s%d", not, *m.UID)
	}
	if m.GID != nil {
		word("meta skgid %s%d", not, *m.GID)
	}
	for _, id := range m.NotGIDs {
		word("meta skgid != %d", id)
	}
	if m.Invalid {
		word("ct state invalid")
	}
	if m.Reply {
		word("ct direction reply")
	}
	if m.Mark != 0 {
		word("meta mark %d", m.Mark)
	}
	if m.ConnectionMark != 0 {
		word("ct mark %d", m.ConnectionMark)
	}
	b.WriteString(r.Do.String())
	return b.String()
}

// String is the action as nft writes it.
func (a Action) String() string {
	switch {
	case a.Jump != "":
		return "jump " + a.Jump
	case a.Transparent:
		return fmt.Sprintf("tproxy to :%d accept", a.Port)
	case a.Port != 0:
		return fmt.Sprintf("redirect to :%d", a.Port)
	case a.Zone != 0:
		return fmt.Sprintf("ct zone set %d", a.Zone)
	case a.Mark != 0:
		return fmt.Sprintf("meta mark set %d", a.Mark)
	case a.ConnectionMark != 0:
		return fmt.Sprintf("ct mark set %d", a.ConnectionMark)
	}
	return a.Verdict
}
