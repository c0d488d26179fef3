package capture

import (
	"net/netip"
	"slices"
)

// own returns the address from which the proxy connects to its application, and the loopback address.
func own(v6 bool) (source, local netip.Prefix) {
	if v6 {
		return netip.MustParsePrefix("::6/128"), netip.MustParsePrefix("::1/128")
	}
	return netip.MustParsePrefix("127.0.0.6/32"), netip.MustParsePrefix("127.0.0.1/32")
}

const (
	loopback  = "lo"
	queryPort = 53
)

// Zones of connection tracking. The application's queries to the agent and the agent's queries to DNS servers may have
// equal addresses and ports; separate zones keep the kernel from mixing them up.
const (
	zoneAgent       = 1
	zoneApplication = 2
)

// Rules returns the rules for IPv4 or IPv6. Within a chain the first rule that matches decides.
func Rules(c Config, v6 bool) ([]Rule, error) {
	p, err := c.parse()
	if err != nil || c.Mode == modeNone {
		return nil, err
	}
	b := &builder{parsed: p, v6: v6}
	b.source, b.local = own(v6)
	b.redirects()
	b.prerouting()
	b.inboundRules()
	b.outputRules()
	b.queries()
	return b.rules, nil
}

// builder collects the rules of one address family.
type builder struct {
	*parsed
	v6            bool
	source, local netip.Prefix
	rules         []Rule
}

func (b *builder) add(chain string, m Match, do Action) {
	b.rules = append(b.rules, Rule{chain, m, do})
}

func leave() Action                         { return Action{Verdict: "return"} }
func jump(chain string) Action              { return Action{Jump: chain} }
func tcp() Match                            { return Match{Protocol: "tcp"} }
func tcpTo(port uint16) Match               { return Match{Protocol: "tcp", Port: port} }
func (b *builder) fits(p netip.Prefix) bool { return p.Addr().Is6() == b.v6 }

// transparent reports whether inbound traffic keeps its destination (TPROXY).
func (b *builder) transparent() bool { return b.Mode == modeTransparent }

// inboundWay returns the base chain of inbound traffic, and the action there that sends traffic to the proxy.
func (b *builder) inboundWay() string {
	if b.transparent() {
		return Mangle
	}
	return Prerouting
}

func (b *builder) toProxy() Action {
	if b.transparent() {
		return Action{Port: b.InboundPort, Transparent: true}
	}
	return jump(InRedirect)
}

func (b *builder) redirects() {
	b.add(Redirect, tcp(), Action{Port: b.OutboundPort})
	b.add(InRedirect, tcp(), Action{Port: b.InboundPort})
}

// prerouting adds the rules for packets that arrive.
func (b *builder) prerouting() {
	if b.DropInvalid {
		b.add(Mangle, Match{Protocol: "tcp", Invalid: true}, Action{Verdict: "drop"})
	}
	for _, name := range b.leftInterfaces {
		b.add(Prerouting, Match{In: name}, leave())
	}
	for _, name := range b.virtualInterfaces {
		for _, r := range b.exclude {
			if b.fits(r) {
				b.add(Prerouting, Match{In: name, Destination: r}, leave())
			}
		}
		if b.includeAll {
			b.add(Prerouting, Match{In: name, Protocol: "tcp"}, jump(Redirect))
		}
		for _, r := range b.include {
			if b.fits(r) {
				b.add(Prerouting, Match{In: name, Protocol: "tcp", Destination: r}, jump(Redirect))
			}
		}
		b.add(Prerouting, Match{In: name}, leave())
	}
	if b.transparent() {
		b.transparentRules()
	}
	b.add(b.inboundWay(), tcp(), jump(Inbound))
}

// transparentRules adds the rules for a proxy that connects to its application from the address of its client. The
// proxy marks such connections. They are routed over the loopback interface, and so are the answers, which would leave
// the pod otherwise.
func (b *builder) transparentRules() {
	marked := Match{Protocol: "tcp", Mark: b.Mark}
	b.add(Mangle, marked, Action{ConnectionMark: b.Mark})
	for _, name := range append([]string{loopback}, slices.Concat(b.leftInterfaces, b.virtualInterfaces)...) {
		b.add(Mangle, Match{In: name}, leave())
	}
	b.add(Mangle, Match{Protocol: "tcp", Reply: true}, leave())
	b.add(MangleOutput, Match{Protocol: "tcp", ConnectionMark: b.Mark}, Action{Mark: b.Mark})
	b.add(OutputRules, marked, leave())
	b.add(OutputRules, Match{Out: loopback, Source: b.source}, leave())
	// In this mode the proxy runs as root, so only its group tells it from the application; rules by user would match
	// the application too.
	for _, id := range b.gids {
		b.add(OutputRules, b.ownCall(Match{GID: &id}), jump(InRedirect))
	}
}

// inboundRules adds the rules that choose which inbound traffic goes to the proxy.
func (b *builder) inboundRules() {
	if b.TunnelPort != 0 {
		b.add(Inbound, tcpTo(b.TunnelPort), leave())
	}
	for _, port := range b.inbound {
		b.add(Inbound, tcpTo(port), b.toProxy())
	}
	if !b.inboundAll {
		return
	}
	for _, port := range b.excludeInbound {
		b.add(Inbound, tcpTo(port), leave())
	}
	b.add(Inbound, tcp(), b.toProxy())
}

// outputRules adds the rules for connections that processes of the pod open.
func (b *builder) outputRules() {
	for _, name := range b.leftInterfaces {
		b.add(Output, Match{Out: name}, leave())
	}
	b.add(Output, tcp(), jump(OutputRules))
	for _, port := range b.excludePorts {
		b.add(OutputRules, tcpTo(port), leave())
	}
	// The proxy connects to its application.
	b.add(OutputRules, Match{Out: loopback, Source: b.source}, leave())
	for _, id := range b.uids {
		b.ownerRules(Match{UID: &id})
	}
	for _, id := range b.gids {
		b.ownerRules(Match{GID: &id})
	}
	b.ownerGroups(OutputRules, Match{})
	if b.DNS {
		b.toServers(OutputRules, tcpTo(queryPort), Action{Port: b.DNSPort})
	}
	b.add(OutputRules, Match{Destination: b.local}, leave())
	for _, r := range b.exclude {
		if b.fits(r) {
			b.add(OutputRules, Match{Destination: r}, leave())
		}
	}
	for _, port := range b.includePorts {
		b.add(OutputRules, tcpTo(port), jump(Redirect))
	}
	if b.includeAll {
		b.add(OutputRules, tcp(), jump(Redirect))
	}
	for _, r := range b.include {
		if b.fits(r) {
			b.add(OutputRules, Match{Protocol: "tcp", Destination: r}, jump(Redirect))
		}
	}
}

// ownerGroups adds rules that leave alone those of the matching packets whose process is in a group that is not
// captured.
func (b *builder) ownerGroups(chain string, m Match) {
	for _, id := range b.excludeOwners {
		m.GID = &id
		b.add(chain, m, leave())
	}
	if len(b.owners) > 0 {
		m.GID, m.NotGIDs = nil, b.owners
		b.add(chain, m, leave())
	}
}

// ownerRules adds the rules for one user or group of the proxy.
func (b *builder) ownerRules(of Match) {
	// A process of the application connects to another process of its pod: this is not captured.
	inside := of
	inside.Out, inside.NotOwner = loopback, true
	if b.DNS {
		inside.Protocol, inside.NotPorts = "tcp", []uint16{queryPort}
	}
	b.add(OutputRules, b.ownCall(of), jump(InRedirect))
	b.add(OutputRules, inside, leave())
	b.add(OutputRules, of, leave())
}

// ownCall adds the rule for a proxy that calls a service of its own pod: the connection is treated as inbound.
func (b *builder) ownCall(of Match) Match {
	of.Out, of.Protocol, of.Destination, of.NotDestination = loopback, "tcp", b.local, true
	if b.TunnelPort != 0 {
		of.NotPorts = append(of.NotPorts, b.TunnelPort)
	}
	if b.DNS {
		of.NotPorts = append(of.NotPorts, queryPort)
	}
	return of
}

// toServers adds a rule for each DNS server that the pod queries.
func (b *builder) toServers(chain string, m Match, do Action) {
	if b.AllDNS {
		b.add(chain, m, do)
		return
	}
	for _, a := range b.Nameservers {
		if a.Is6() == b.v6 {
			m.Destination = netip.PrefixFrom(a, a.BitLen())
			b.add(chain, m, do)
		}
	}
}

// queries adds the rules for DNS queries over UDP.
func (b *builder) queries() {
	if !b.DNS {
		return
	}
	query := Match{Protocol: "udp", Port: queryPort}
	var owners []Match
	for _, id := range b.uids {
		owners = append(owners, Match{UID: &id})
	}
	for _, id := range b.gids {
		owners = append(owners, Match{GID: &id})
	}
	for _, o := range owners {
		m := query
		m.UID, m.GID = o.UID, o.GID
		b.add(Output, m, leave())
	}
	b.ownerGroups(Output, query)
	b.toServers(Output, query, Action{Port: b.DNSPort})
	for _, o := range owners {
		m := query
		m.UID, m.GID = o.UID, o.GID
		b.add(RawOutput, m, Action{Zone: zoneAgent})
		answer := Match{Protocol: "udp", SourcePort: b.DNSPort, UID: o.UID, GID: o.GID}
		b.add(RawOutput, answer, Action{Zone: zoneApplication})
	}
	for _, o := range owners { // traffic that is not the proxy's is the application's
		m := query
		m.UID, m.GID = o.UID, o.GID
		b.add(RawOutput, m, leave())
	}
	b.toServers(RawOutput, query, Action{Zone: zoneApplication})
	for _, a := range b.servers() {
		b.add(RawPrerouting, Match{Protocol: "udp", SourcePort: queryPort, Source: a}, Action{Zone: zoneAgent})
	}
}

// servers returns the addresses that answer the agent's queries. An invalid prefix in it stands for any address.
func (b *builder) servers() (out []netip.Prefix) {
	if b.AllDNS {
		return []netip.Prefix{{}}
	}
	for _, a := range b.Nameservers {
		if a.Is6() == b.v6 {
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return out
}
