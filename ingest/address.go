package ingest

import (
	"net/netip"
	"slices"
)

// addressOf returns an address in the one form that values use: however an object writes it, equal addresses have equal
// texts, and an IPv4 address that is written as an IPv6 address becomes plain IPv4. With two texts for one address
// Envoy would get two listeners for one socket and refuse one of them. A text that is no address is returned unchanged.
func addressOf(s string) string {
	a, err := netip.ParseAddr(s)
	if err != nil || a.Is4() { // An IPv4 address has only one text that parses.
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

// subnetOf returns an address range in the one form that values use: its first address and prefix length, or the
// address alone if the range has only one.
func subnetOf(s string) string {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return addressOf(s)
	}
	const mapped = 96 // length of the prefix that marks an IPv4 address written as IPv6
	if a := p.Addr(); a.Is4In6() && p.Bits() >= mapped {
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-mapped)
	}
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.Masked().String()
}

// addressesOf returns addresses in the form that values use, without duplicates. It returns the given list itself if
// there is nothing to change.
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
