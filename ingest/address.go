package ingest

import (
	"net/netip"
	"slices"
)

// addressOf returns an address as values hold it: each address has one text, however objects write it, and an IPv4
// address that is written as an IPv6 one is an IPv4 address. Two texts for one address would be two listeners on one
// socket, of which Envoy refuses one. Other texts stay.
func addressOf(s string) string {
	a, err := netip.ParseAddr(s)
	if err != nil || a.Is4() { // Of an IPv4 address only one text parses.
		return s
	}
	var text [netip6Length]byte
	if canonical := a.Unmap().AppendTo(text[:0]); string(canonical) != s {
		return string(canonical)
	}
	return s
}

// netip6Length is the length of the longest IPv6 address without a zone.
const netip6Length = len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")

// subnetOf returns a range of addresses as values hold it: by its first address and its length, or the address alone
// where there is only one.
func subnetOf(s string) string {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return addressOf(s)
	}
	const mapped = 96 // bits in front of an IPv4 address that is written as an IPv6 one
	if a := p.Addr(); a.Is4In6() && p.Bits() >= mapped {
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-mapped)
	}
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.Masked().String()
}

// addressesOf returns addresses as values hold them, each once. The list is the given one where nothing is to do.
func addressesOf(list []string) []string {
	clean := true
	for i, a := range list {
		clean = clean && addressOf(a) == a && !slices.Contains(list[:i], a)
	}
	if clean {
		return list
	}
	out := make([]string, 0, len(list))
	for _, a := range list {
		if a = addressOf(a); !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}
