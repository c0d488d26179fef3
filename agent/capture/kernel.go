package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Table is the name of the two nftables tables that hold the rules, one for IPv4 and one for IPv6.
const Table = "istio_proxy"

// way is a base chain: one that the kernel itself sends packets through.
type way struct {
	name     string
	kind     nftables.ChainType
	hook     *nftables.ChainHook
	priority nftables.ChainPriority
}

func ways() []way {
	return []way{
		{Prerouting, nftables.ChainTypeNAT, nftables.ChainHookPrerouting, *nftables.ChainPriorityNATDest},
		{Output, nftables.ChainTypeNAT, nftables.ChainHookOutput, *nftables.ChainPriorityNATDest},
		{RawPrerouting, nftables.ChainTypeFilter, nftables.ChainHookPrerouting, *nftables.ChainPriorityRaw},
		{RawOutput, nftables.ChainTypeFilter, nftables.ChainHookOutput, *nftables.ChainPriorityRaw},
		{Mangle, nftables.ChainTypeFilter, nftables.ChainHookPrerouting, *nftables.ChainPriorityMangle},
		{MangleOutput, nftables.ChainTypeRoute, nftables.ChainHookOutput, *nftables.ChainPriorityMangle},
	}
}

func called() []string { return []string{Inbound, InRedirect, Redirect, OutputRules} }

// families returns the address families that a Config writes rules for; true means IPv6.
func families(c Config) []bool {
	if c.IPv6 {
		return []bool{false, true}
	}
	return []bool{false}
}

// Text returns the rules as a script for nft that replaces those of an earlier Apply.
func Text(c Config) (string, error) {
	var b strings.Builder
	for _, v6 := range families(c) {
		rules, err := Rules(c, v6)
		if err != nil {
			return "", err
		}
		family := "ip"
		if v6 {
			family = "ip6"
		}
		fmt.Fprintf(&b, "table %s %s\ndelete table %s %s\n", family, Table, family, Table)
		if len(rules) == 0 {
			continue
		}
		fmt.Fprintf(&b, "table %s %s {\n", family, Table)
		for _, name := range called() {
			writeChain(&b, name, "", rules)
		}
		for _, w := range ways() {
			hook := "prerouting"
			if *w.hook == *nftables.ChainHookOutput {
				hook = "output"
			}
			if w.name == MangleOutput && c.Mode != modeTransparent {
				continue
			}
			writeChain(&b, w.name, fmt.Sprintf("type %s hook %s priority %d; policy accept;", w.kind, hook, w.priority), rules)
		}
		b.WriteString("}\n" + routeText(c, v6))
	}
	return b.String(), nil
}

func writeChain(b *strings.Builder, name, head string, rules []Rule) {
	fmt.Fprintf(b, "\tchain %s {\n", name)
	if head != "" {
		fmt.Fprintf(b, "\t\t%s\n", head)
	}
	for _, r := range rules {
		if r.Chain == name {
			fmt.Fprintf(b, "\t\t%s\n", r)
		}
	}
	b.WriteString("\t}\n")
}

// Apply installs the rules in the kernel for this network namespace, in place of those of an earlier Apply.
func Apply(c Config) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("nf_tables: %w", err)
	}
	for _, v6 := range families(c) {
		rules, err := Rules(c, v6)
		if err != nil {
			return err
		}
		t := &nftables.Table{Family: nftables.TableFamilyIPv4, Name: Table}
		if v6 {
			t.Family = nftables.TableFamilyIPv6
		}
		conn.AddTable(t) // deleting a table that does not exist is an error
		conn.DelTable(t)
		if len(rules) > 0 {
			addRules(conn, conn.AddTable(t), rules)
		}
	}
	if err := conn.Flush(); err != nil {
		if c.Mode == modeTransparent && errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("nf_tables: mode %s: %w: the kernel lacks nft_tproxy", c.Mode, err)
		}
		return fmt.Errorf("nf_tables: %w", err)
	}
	for _, v6 := range families(c) {
		if err := route(c, v6); err != nil {
			return err
		}
	}
	if c.IPv6 && c.Mode != modeNone {
		return addSource()
	}
	return nil
}

// route installs or removes the routes that keep marked packets inside the pod, as the mode requires.
func route(c Config, v6 bool) error {
	switch {
	case c.Mode == modeTransparent:
		return routeMarked(c, v6)
	case c.Mark != 0 && c.RouteTable != 0:
		return unrouteMarked(c, v6)
	}
	return nil
}

// addSource adds to the loopback interface the IPv6 address from which the proxy connects to its application. The IPv4
// counterpart is there without it.
func addSource() error {
	lo, err := netlink.LinkByName(loopback)
	if err != nil {
		return fmt.Errorf("interface %s: %w", loopback, err)
	}
	source, _ := own(true)
	address := &netlink.Addr{IPNet: &net.IPNet{IP: source.Addr().AsSlice(), Mask: net.CIDRMask(128, 128)}}
	if err := netlink.AddrReplace(lo, address); err != nil {
		return fmt.Errorf("address %s of interface %s: %w", source.Addr(), loopback, err)
	}
	return nil
}

// Remove deletes the rules that Apply has installed. It is no error if there are none.
func Remove(c Config) error { return Apply(c.without()) }

// without returns a Config that captures nothing, for the same address families and routing table.
func (c Config) without() Config {
	return Config{Mode: modeNone, UIDs: "0", OutboundPort: 1, InboundPort: 1, IPv6: c.IPv6, Mark: c.Mark,
		RouteTable: c.RouteTable}
}

func addRules(conn *nftables.Conn, t *nftables.Table, rules []Rule) {
	accept := nftables.ChainPolicyAccept
	chains := map[string]*nftables.Chain{}
	for _, name := range called() {
		chains[name] = conn.AddChain(&nftables.Chain{Table: t, Name: name})
	}
	for _, w := range ways() {
		used := slices.ContainsFunc(rules, func(r Rule) bool { return r.Chain == w.name })
		if w.name == MangleOutput && !used {
			continue // a base chain of its own would cost every packet that leaves
		}
		chains[w.name] = conn.AddChain(&nftables.Chain{Table: t, Name: w.name, Type: w.kind, Hooknum: w.hook,
			Priority: &w.priority, Policy: &accept})
	}
	for _, r := range rules {
		conn.AddRule(&nftables.Rule{Table: t, Chain: chains[r.Chain],
			Exprs: append(r.Match.exprs(), r.Do.exprs(t.Family)...)})
	}
}

// Offsets of addresses and ports in packet headers.
const (
	sourceV4, destinationV4     = 12, 16
	sourceV6, destinationV6     = 8, 24
	sourceOffset, destineOffset = 0, 2
)

func (m Match) exprs() (out []expr.Any) {
	meta := func(key expr.MetaKey, op expr.CmpOp, data []byte) {
		out = append(out, &expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: op, Register: 1, Data: data})
	}
	if m.In != "" {
		meta(expr.MetaKeyIIFNAME, expr.CmpOpEq, padded(m.In))
	}
	if m.Out != "" {
		meta(expr.MetaKeyOIFNAME, expr.CmpOpEq, padded(m.Out))
	}
	out = append(out, address(m.Source, sourceV4, sourceV6, false)...)
	out = append(out, address(m.Destination, destinationV4, destinationV6, m.NotDestination)...)
	switch m.Protocol {
	case "tcp":
		meta(expr.MetaKeyL4PROTO, expr.CmpOpEq, []byte{unix.IPPROTO_TCP})
	case "udp":
		meta(expr.MetaKeyL4PROTO, expr.CmpOpEq, []byte{unix.IPPROTO_UDP})
	}
	if m.Port != 0 {
		out = append(out, port(destineOffset, expr.CmpOpEq, m.Port)...)
	}
	if m.SourcePort != 0 {
		out = append(out, port(sourceOffset, expr.CmpOpEq, m.SourcePort)...)
	}
	for _, p := range m.NotPorts {
		out = append(out, port(destineOffset, expr.CmpOpNeq, p)...)
	}
	owner := expr.CmpOpEq
	if m.NotOwner {
		owner = expr.CmpOpNeq
	}
	if m.UID != nil {
		meta(expr.MetaKeySKUID, owner, binary.NativeEndian.AppendUint32(nil, *m.UID))
	}
	if m.GID != nil {
		meta(expr.MetaKeySKGID, owner, binary.NativeEndian.AppendUint32(nil, *m.GID))
	}
	for _, id := range m.NotGIDs {
		meta(expr.MetaKeySKGID, expr.CmpOpNeq, binary.NativeEndian.AppendUint32(nil, id))
	}
	if m.Mark != 0 {
		meta(expr.MetaKeyMARK, expr.CmpOpEq, binary.NativeEndian.AppendUint32(nil, m.Mark))
	}
	if m.ConnectionMark != 0 {
		out = append(out, &expr.Ct{Key: expr.CtKeyMARK, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1,
			Data: binary.NativeEndian.AppendUint32(nil, m.ConnectionMark)})
	}
	if m.Reply {
		const reply = 1 // IP_CT_DIR_REPLY of the kernel's enum ip_conntrack_dir
		out = append(out, &expr.Ct{Key: expr.CtKeyDIRECTION, Register: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{reply}})
	}
	if m.Invalid {
		out = append(out, &expr.Ct{Key: expr.CtKeySTATE, Register: 1},
			&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4,
				Mask: binary.NativeEndian.AppendUint32(nil, expr.CtStateBitINVALID), Xor: make([]byte, 4)},
			&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)})
	}
	return out
}

// padded returns an interface's name in the form that the kernel compares.
func padded(name string) []byte {
	out := make([]byte, interfaceName)
	copy(out, name)
	return out
}

func port(offset uint32, op expr.CmpOp, n uint16) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: offset, Len: 2},
		&expr.Cmp{Op: op, Register: 1, Data: binary.BigEndian.AppendUint16(nil, n)},
	}
}

// address returns expressions that compare an address in the packet's header with a range. The address lies at offset
// v4 or v6. An invalid range matches everything, so it gives no expression.
func address(p netip.Prefix, v4, v6 uint32, not bool) []expr.Any {
	if !p.IsValid() {
		return nil
	}
	offset, op := v4, expr.CmpOpEq
	if p.Addr().Is6() {
		offset = v6
	}
	if not {
		op = expr.CmpOpNeq
	}
	want := p.Masked().Addr().AsSlice()
	size := uint32(len(want))
	out := []expr.Any{&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: size}}
	if !p.IsSingleIP() {
		mask := make([]byte, size)
		for i := range p.Bits() {
			mask[i/8] |= 0x80 >> (i % 8)
		}
		out = append(out, &expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: size, Mask: mask, Xor: make([]byte, size)})
	}
	return append(out, &expr.Cmp{Op: op, Register: 1, Data: want})
}

// exprs returns the kernel's expressions for the action. A TPROXY action depends on the address family.
func (a Action) exprs(family nftables.TableFamily) []expr.Any {
	switch {
	case a.Transparent:
		return []expr.Any{&expr.Immediate{Register: 1, Data: binary.BigEndian.AppendUint16(nil, a.Port)},
			&expr.TProxy{Family: byte(family), TableFamily: byte(family), RegPort: 1},
			&expr.Verdict{Kind: expr.VerdictAccept}}
	case a.Mark != 0:
		return []expr.Any{&expr.Immediate{Register: 1, Data: binary.NativeEndian.AppendUint32(nil, a.Mark)},
			&expr.Meta{Key: expr.MetaKeyMARK, Register: 1, SourceRegister: true}}
	case a.ConnectionMark != 0:
		return []expr.Any{&expr.Immediate{Register: 1, Data: binary.NativeEndian.AppendUint32(nil, a.ConnectionMark)},
			&expr.Ct{Key: expr.CtKeyMARK, Register: 1, SourceRegister: true}}
	case a.Jump != "":
		return []expr.Any{&expr.Verdict{Kind: expr.VerdictJump, Chain: a.Jump}}
	case a.Port != 0:
		return []expr.Any{&expr.Immediate{Register: 1, Data: binary.BigEndian.AppendUint16(nil, a.Port)},
			&expr.Redir{RegisterProtoMin: 1}}
	case a.Zone != 0:
		return []expr.Any{&expr.Immediate{Register: 1, Data: binary.NativeEndian.AppendUint16(nil, a.Zone)},
			&expr.Ct{Key: expr.CtKeyZONE, Register: 1, SourceRegister: true}}
	case a.Verdict == "drop":
		return []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}}
	case a.Verdict == "accept":
		return []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}
	}
	return []expr.Any{&expr.Verdict{Kind: expr.VerdictReturn}}
}
