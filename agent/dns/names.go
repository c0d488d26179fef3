package dns

import (
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strings"

	ndsv1 "github.com/pilotd/pilotd/proto/nds/v1"
)

// Domain is where a pod is: its namespace, and the domain of Services, svc.cluster.local.
type Domain struct {
	Namespace, Services string
}

// DomainOf reads a pod's domain, NAMESPACE.svc.cluster.local.
func DomainOf(namespace, domain string) Domain {
	return Domain{Namespace: namespace, Services: strings.TrimPrefix(canonical(domain), namespace+".")}
}

// Names are all names that are known, with their addresses. Immutable.
type Names struct {
	// exact is by name in lower case, without a dot at its end. wild is by what stands behind "*.".
	exact, wild map[string][]netip.Addr
}

// kubernetes is the registry whose names have short forms.
const kubernetes = "Kubernetes"

// Compile makes Names of a table. Values that are no addresses are left out, and so is a name without any. The name "*"
// is left out, too: it would stand for every name.
func Compile(table *ndsv1.NameTable, d Domain) *Names {
	n := &Names{exact: map[string][]netip.Addr{}, wild: map[string][]netip.Addr{}}
	for _, host := range d.ownFirst(table) {
		info := table.Table[host]
		addresses := parse(info.GetIps())
		host = canonical(host)
		if len(addresses) == 0 || host == "" || host == "*" {
			continue
		}
		if rest, ok := strings.CutPrefix(host, "*."); ok {
			n.wild[rest] = addresses
			continue
		}
		n.exact[host] = addresses
		if info.GetRegistry() != kubernetes || info.GetShortname() == "" || !strings.HasSuffix(host, "."+d.Services) {
			continue
		}
		short := canonical(info.Shortname)
		own := short + "." + canonical(info.Namespace)
		n.short(own, addresses)
		n.short(own+".svc", addresses)
		if info.Namespace == d.Namespace {
			n.short(short, addresses)
		}
	}
	return n
}

// ownFirst are the hosts of a table in the order in which they have a right to a short form that two of them have:
// those of the pod's own namespace, whose domain clients search first, and all by name.
func (d Domain) ownFirst(table *ndsv1.NameTable) []string {
	out := slices.Sorted(maps.Keys(table.GetTable()))
	own := func(host string) int {
		if table.Table[host].GetNamespace() == d.Namespace {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(out, func(a, b string) int { return own(a) - own(b) })
	return out
}

// short adds a short form, unless a host is really called so, or has it by a better right.
func (n *Names) short(name string, addresses []netip.Addr) {
	if _, taken := n.exact[name]; !taken {
		n.exact[name] = addresses
	}
}

func parse(texts []string) (out []netip.Addr) {
	for _, t := range texts {
		if a, err := netip.ParseAddr(t); err == nil && a.Zone() == "" {
			out = append(out, a.Unmap())
		}
	}
	return out
}

// canonical is a name in lower case, without a dot at its end.
func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// Found is what is known of a name.
type Found struct {
	Addresses []netip.Addr
	// Alias is the name that was found in place of the one that was asked for, which has a search domain behind it;
	// empty if that one itself was found.
	Alias string
}

// Lookup looks up a name as a client asks for it. search is the first search domain, which clients put behind names.
func (n *Names) Lookup(name, search string) (Found, bool) {
	name = canonical(name)
	if a, ok := n.plain(name); ok {
		return Found{Addresses: a}, true
	}
	base, ok := strings.CutSuffix(name, "."+search)
	if search == "" || !ok || base == "" || strings.HasSuffix(base, "."+search) {
		return Found{}, false
	}
	a, ok := n.plain(base)
	return Found{Addresses: a, Alias: base}, ok
}

// plain looks up a name, then the patterns that it fits, the narrowest first.
func (n *Names) plain(name string) ([]netip.Addr, bool) {
	if a, ok := n.exact[name]; ok {
		return a, true
	}
	for rest := name; ; {
		_, after, ok := strings.Cut(rest, ".")
		if !ok {
			return nil, false
		}
		if a, ok := n.wild[after]; ok {
			return a, true
		}
		rest = after
	}
}

// JSON is all that is known, for who looks for a fault.
func (n *Names) JSON() []byte {
	out := map[string][]string{}
	for prefix, of := range map[string]map[string][]netip.Addr{"": n.exact, "*.": n.wild} {
		for name, addresses := range of {
			for _, a := range addresses {
				out[prefix+name] = append(out[prefix+name], a.String())
			}
			slices.Sort(out[prefix+name])
		}
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil
	}
	return text
}
