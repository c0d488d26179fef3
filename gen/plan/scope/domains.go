package scope

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// domain is a domain that a virtual host asks for. A short one, made from a longer host, yields to the service that is
// really called so.
type domain struct {
	Name  string
	short bool
}

// domains returns the domains of an owner's virtual host: those that it asks for, without those that another one has.
func (v PortView) domains(c Owner) []string {
	var out []string
	for _, d := range v.asked(c) {
		if v.taken(c, d) || slices.Contains(out, d.Name) {
			continue
		}
		out = append(out, d.Name)
	}
	return out
}

// Dialled returns all domains that an owner's virtual host asks for, each also with the port.
func (v PortView) Dialled(c Owner) []string {
	var out []string
	for _, d := range v.asked(c) {
		if !slices.Contains(out, d.Name) {
			out = append(out, d.Name, fmt.Sprintf("%s:%d", d.Name, v.Port))
		}
	}
	return out
}

// asked returns the domains that an owner's virtual host would have if it were the only one.
func (v PortView) asked(c Owner) []domain {
	if c.Service == nil {
		return []domain{{Name: gen.Domain(c.Host)}}
	}
	out := v.Names(c.Host)
	for _, alias := range Aliases(v.Snapshot, v.Scope, c.Service) {
		out = append(out, v.Names(alias)...)
	}
	if c.Service.Headless {
		for _, d := range out {
			out = append(out, domain{"*." + d.Name, d.short})
		}
	}
	for _, a := range v.addresses(c.Service) {
		out = append(out, domain{Name: gen.Domain(a)})
	}
	return out
}

// Names returns a service's host, the same with a final dot, and its short forms in the client's namespace.
func (v PortView) Names(host string) []domain {
	out := []domain{{Name: host}}
	if v.Scope.Traits.Type != value.Proxyless {
		out = append(out, domain{Name: host + "."})
	}
	rest, ok := strings.CutSuffix(host, ".svc."+v.Snapshot.Mesh.DomainSuffix)
	name, ns, ok2 := strings.Cut(rest, ".")
	if !ok || !ok2 {
		return out
	}
	if v.Scope.In(ns) {
		out = append(out, domain{name, true})
	}
	return append(out, domain{rest, true}, domain{rest + ".svc", true})
}

// Aliases returns the hosts of the ExternalName services that stand for svc, directly or by way of others, as far as
// the scope imports them.
func Aliases(n *snapshot.Snapshot, sc *Scope, svc *value.Service) []string {
	return slices.DeleteFunc(aliasesOf(n, sc, svc.Host, 0),
		func(alias string) bool { return !sc.importsAlias(svc, alias) })
}

func aliasesOf(n *snapshot.Snapshot, sc *Scope, host string, depth int) []string {
	const deepest = 8 // they may stand for each other
	var out []string
	for a := range n.AliasesOf(host) {
		if sc.Sees(a.Export) && depth < deepest {
			out = append(append(out, a.Host), aliasesOf(n, sc, a.Host, depth+1)...)
		}
	}
	return out
}

// addresses returns the virtual addresses by which the proxy may call a service: of those in its own families, the
// first of a Kubernetes Service, all of a ServiceEntry. Ranges are none.
func (v PortView) addresses(svc *value.Service) []string {
	var out []string
	for _, a := range svc.Addresses {
		ip, err := netip.ParseAddr(a)
		t := v.Scope.Traits
		if err != nil || ip.Is4() && !t.IPv4 && t.IPv6 || ip.Is6() && !t.IPv6 {
			continue
		}
		out = append(out, a)
		if svc.Registry == value.RegistryKubernetes {
			break
		}
	}
	return out
}

// taken reports whether another virtual host has a domain that c asks for.
func (v PortView) taken(c Owner, d domain) bool {
	for _, host := range v.rivals(d.Name) {
		if host == c.Host || !hasService(v.Snapshot, host) && !hasVirtualService(v.Snapshot, host) {
			continue
		}
		other, ok := v.Owner(host)
		if !ok {
			continue
		}
		asked := v.asked(other)
		i := slices.IndexFunc(asked, func(o domain) bool { return o.Name == d.Name })
		switch {
		case i < 0:
		case d.short && other.Service != nil && other.Host == d.Name:
			return true
		case asked[i].short && c.Service != nil && c.Host == d.Name:
		case other.before(c, v.Scope):
			return true
		}
	}
	return false
}

// rivals returns the hosts whose virtual hosts may ask for a domain.
func (v PortView) rivals(name string) []string {
	return claimants(v.Snapshot, name, func(short string) []string { return v.Scope.namesakes(v.Snapshot, short) })
}

// claimants returns the hosts that may ask for a domain. namesake gives the services that a name without dots may mean.
func claimants(n *snapshot.Snapshot, name string, namesake func(short string) []string) []string {
	if ip, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		out := []string{ip.String()}
		for svc := range n.ServicesAt(ip.String()) {
			out = append(out, svc.Host)
		}
		return out
	}
	name = strings.TrimSuffix(name, ".")
	out := append([]string{name}, expansions(n, name, namesake)...)
	if rest, ok := strings.CutPrefix(name, "*."); ok {
		out = append(append(out, rest), expansions(n, rest, namesake)...)
	}
	for _, h := range out {
		out = append(out, targets(n, h, 0)...)
	}
	return out
}

// expansions returns the services that a name may be short for.
func expansions(n *snapshot.Snapshot, name string, namesake func(string) []string) []string {
	suffix := n.Mesh.DomainSuffix
	switch dots := strings.Count(name, "."); {
	case name == "*":
	case dots == 0:
		return namesake(name)
	case dots == 1:
		return []string{name + ".svc." + suffix}
	case dots == 2 && strings.HasSuffix(name, ".svc"):
		return []string{name + "." + suffix}
	}
	return nil
}

// targets returns the hosts that the ExternalName services of host stand for.
func targets(n *snapshot.Snapshot, host string, depth int) []string {
	var out []string
	for svc := range n.ServicesOfHost(host) {
		if svc.ExternalName != "" && depth < 8 {
			out = append(append(out, svc.ExternalName), targets(n, svc.ExternalName, depth+1)...)
		}
	}
	return out
}

// namespaceOf returns the namespace in whose clients a host has a short name; empty if it has none.
func namespaceOf(n *snapshot.Snapshot, host string) string {
	rest, ok := strings.CutSuffix(host, ".svc."+n.Mesh.DomainSuffix)
	if !ok {
		return ""
	}
	_, namespace, _ := strings.Cut(rest, ".")
	return namespace
}

// nearHosts returns the hosts whose virtual hosts depend on the service or VirtualServices of host: itself, its
// aliases, and those that could claim a domain of one of them, the targets of aliases among them.
func nearHosts(n *snapshot.Snapshot, host string) []string {
	out := []string{host}
	for alias := range n.AliasesOf(host) { // whose names are the target's too
		out = append(out, alias.Host)
	}
	for _, h := range out {
		for _, name := range domainsAnywhere(n, h) {
			for _, r := range claimants(n, name, func(short string) []string { return namesakes(n, short) }) {
				if hasService(n, r) || hasVirtualService(n, r) {
					out = append(out, r)
				}
			}
		}
	}
	return out
}

// domainsAnywhere returns the domains that host may claim for clients of any namespace, without final dots.
func domainsAnywhere(n *snapshot.Snapshot, host string) []string {
	out := []string{host}
	headless := false
	for svc := range n.ServicesOfHost(host) {
		headless = headless || svc.Headless
		out = append(out, svc.Addresses...)
	}
	if rest, ok := strings.CutSuffix(host, ".svc."+n.Mesh.DomainSuffix); ok {
		out = append(out, rest, rest+".svc")
		if name, _, cut := strings.Cut(rest, "."); cut {
			out = append(out, name)
		}
	}
	if headless {
		for _, d := range out {
			out = append(out, "*."+d)
		}
	}
	return out
}

// namesakes returns the services of all namespaces that clients there may call by a name without dots. Hosts and
// patterns that are such names are rare: only where one exists are they looked for.
func namesakes(n *snapshot.Snapshot, short string) []string {
	if !hasService(n, short) && !hasVirtualService(n, short) && !hasVirtualService(n, "*."+short) {
		return nil
	}
	var out []string
	for svc := range n.ServicesBeginning(short + ".") {
		if strings.HasSuffix(svc.Host, ".svc."+n.Mesh.DomainSuffix) {
			out = append(out, svc.Host)
		}
	}
	return out
}
