package testnet

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

const (
	outboundPort = 15001
	inboundPort  = 15006
	// inboundSource is the address to which Envoy binds when it forwards a request to its own application. Connections
	// from it must not be captured again.
	inboundSource = "127.0.0.6"
)

// Capture redirects the pod's traffic to its Envoy: outbound connections to 15001, and inbound ones to 15006, except on
// the ports in except (Envoy's own).
func (p *Pod) Capture(except ...uint16) error {
	c, err := nftables.New(nftables.WithNetNSFd(int(p.ns)))
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "pilotd_e2e"})
	accept := nftables.ChainPolicyAccept
	out := c.AddChain(&nftables.Chain{
		Table: table, Name: "output", Type: nftables.ChainTypeNAT, Policy: &accept,
		Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest,
	})
	in := c.AddChain(&nftables.Chain{
		Table: table, Name: "prerouting", Type: nftables.ChainTypeNAT, Policy: &accept,
		Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityNATDest,
	})
	rule := func(chain *nftables.Chain, parts ...[]expr.Any) {
		r := &nftables.Rule{Table: table, Chain: chain}
		for _, part := range parts {
			r.Exprs = append(r.Exprs, part...)
		}
		c.AddRule(r)
	}
	services := netip.MustParsePrefix(ServiceRange)
	rule(out, address(sourceOffset, netip.PrefixFrom(netip.MustParseAddr(inboundSource), 32)), done())
	rule(out, tcp(), address(destinationOffset, services), redirect(outboundPort))
	rule(out, tcp(), marked(appMark), redirect(outboundPort))
	for _, port := range except {
		rule(in, tcp(), destinationPort(port), done())
	}
	rule(in, tcp(), redirect(inboundPort))
	if err := c.Flush(); err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	return nil
}

// Offsets of the addresses in the IPv4 header.
const (
	sourceOffset      = 12
	destinationOffset = 16
)

func tcp() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
	}
}

func address(offset uint32, in netip.Prefix) []expr.Any {
	want := in.Masked().Addr().As4()
	mask := make([]byte, 4)
	binary.BigEndian.PutUint32(mask, ^uint32(0)<<(32-in.Bits()))
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: mask, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: want[:]},
	}
}

func marked(mark uint32) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binary.NativeEndian.AppendUint32(nil, mark)},
	}
}

func destinationPort(port uint16) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binary.BigEndian.AppendUint16(nil, port)},
	}
}

func done() []expr.Any { return []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}} }

func redirect(port uint16) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: 1, Data: binary.BigEndian.AppendUint16(nil, port)},
		&expr.Redir{RegisterProtoMin: 1},
	}
}
