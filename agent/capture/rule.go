package capture

import (
	"fmt"
	"net/netip"
	"strings"
)

// Names of chains. The kernel sends packets through those in lower case; rules jump to the others.
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

// interfaceName is the kernel's size of an interface name in bytes, with the zero byte at its end.
const interfaceName = 16

// Rule is an action for the packets of one chain that match.
type Rule struct {
	Chain string
	Match Match
	Do    Action
}

// Match says which packets a rule applies to. A packet must match every field that is set.
type Match struct {
	In, Out             string // interface
	Protocol            string // tcp or udp
	Source, Destination netip.Prefix
	NotDestination      bool // inverts Destination
	Port, SourcePort    uint16
	NotPorts            []uint16
	UID, GID            *uint32
	NotOwner            bool // inverts UID and GID
	NotGIDs             []uint32
	Invalid             bool // packets that belong to no known connection
	Reply               bool // packets in the direction of replies
	Mark                uint32
	ConnectionMark      uint32
}

// Action is what a rule does. One of its fields is set: Verdict, Jump to a chain, redirect to Port, set the Zone of the
// connection, or Mark the packet or its connection.
type Action struct {
	Verdict string // accept, return, drop
	Jump    string
	Port    uint16
	// Transparent hands a packet to Port with its destination unchanged (TPROXY), so that the listener sees the
	// original destination.
	Transparent          bool
	Zone                 uint16
	Mark, ConnectionMark uint32
}

// String returns the rule in the syntax of nft.
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

// String returns the action in the syntax of nft.
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
