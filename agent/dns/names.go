package dns

import (
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strings"

	ndsv1 "github.com/pilotd/pilotd/proto/nds/v1"
)

// Domain is the pod's namespace and the DNS domain of Services, such as svc.cluster.local.
type Domain struct {
	Namespace, Services string
}

// DomainOf splits a pod's DNS domain, such as NAMESPACE.svc.cluster.local.
func DomainOf(namespace, domain string) Domain {
	return Domain{Namespace: namespace, Services: strings.TrimPrefix(canonical(domain), namespace+".")}
}

// Names are the names of a name table with their addresses. Immutable.
type Names struct {
	// exact is keyed by the name in lower case without its final dot. wild is keyed by what follows "*.".
	exact, wild map[string][]netip.Addr
}

// kubernetes is the registry whose names have short forms, such as NAME.NAMESPACE.
const kubernetes = "Kubernetes"

// Compile makes Names from a name table. It leaves out values that are not addresses, names without addresses, and the
// name "*", which would match every query.
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

// ownFirst returns the hosts of a table in the order in which they claim short forms: first those of the pod's own
// namespace, whose domain clients search first, then the others, each by name.
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

// short adds a short form of a host, unless it is the full name of another host or an earlier host has it.
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

// canonical returns a name in lower case, without its final dot.
func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// Found is the result of a lookup.
type Found struct {
	Addresses []netip.Addr
	// Alias is the name that was found after a search domain was cut off from the name in the query. It is empty if the
	// queried name itself was found.
	Alias string
}

// Lookup looks up a name of a query. search is the first search domain, which clients append to names.
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

// plain looks up a name, then the wildcards that match it, the most specific first.
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

// JSON returns all names and addresses, for debugging.
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
