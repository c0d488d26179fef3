package check

import (
	"fmt"
	"slices"
	"strings"

	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
)

// Listener returns the rules that a listener breaks, but for those about its chains. It may have no chains, where they
// are encoded for themselves.
func Listener(l *listenerpb.Listener) []Fault {
	f := &faults{}
	f.validate(l)
	f.address("address", l.GetAddress(), false)
	for i, a := range l.GetAdditionalAddresses() {
		f.address(fmt.Sprintf("additional_addresses[%d].address", i), a.GetAddress(), false)
	}
	f.duration("listener_filters_timeout", l.GetListenerFiltersTimeout())
	return f.list
}

// FilterChain returns the rules that a filter chain breaks.
func FilterChain(c *listenerpb.FilterChain) []Fault {
	f := &faults{}
	f.validate(c)
	for i, n := range c.GetFilterChainMatch().GetServerNames() {
		if strings.Contains(n, "*") && !strings.HasPrefix(n, "*.") {
			f.add(fmt.Sprintf("filter_chain_match.server_names[%d]", i),
				"%s is no pattern of server names: those are *.suffix", cut(n))
		}
	}
	return f.list
}

// Overlap says whether a chain takes connections by the same criteria as one of those before it in the listener: Envoy
// refuses the listener then.
func Overlap(before []*listenerpb.FilterChain, c *listenerpb.FilterChain) []Fault {
	for _, o := range before {
		if overlaps(o.GetFilterChainMatch(), c.GetFilterChainMatch()) {
			return []Fault{{"filter_chain_match", fmt.Sprintf("chain %s takes the same connections: %s",
				cut(o.GetName()), criteria(o.GetFilterChainMatch()))}}
		}
	}
	return nil
}

// overlaps reports whether two matches have a combination of criteria in common. A list that is empty stands for the
// criterion "any", which only another empty list has.
func overlaps(a, b *listenerpb.FilterChainMatch) bool {
	return a.GetDestinationPort().GetValue() == b.GetDestinationPort().GetValue() &&
		a.GetTransportProtocol() == b.GetTransportProtocol() &&
		share(ranges(a), ranges(b)) && share(names(a), names(b)) &&
		share(a.GetApplicationProtocols(), b.GetApplicationProtocols())
}

func share(a, b []string) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// names returns the server names of a match, which have no case.
func names(m *listenerpb.FilterChainMatch) (out []string) {
	for _, n := range m.GetServerNames() {
		out = append(out, strings.ToLower(n))
	}
	return out
}

func ranges(m *listenerpb.FilterChainMatch) (out []string) {
	for _, r := range m.GetPrefixRanges() {
		out = append(out, fmt.Sprintf("%s/%d", r.GetAddressPrefix(), r.GetPrefixLen().GetValue()))
	}
	return out
}

// criteria returns what a match asks for, in short.
func criteria(m *listenerpb.FilterChainMatch) string {
	out := strings.Join(slices.Concat(names(m), ranges(m), m.GetApplicationProtocols()), " ")
	if out == "" {
		return "all"
	}
	return cut(out)
}
