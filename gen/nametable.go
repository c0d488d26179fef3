package gen

import (
	"net/netip"
	"slices"
	"strings"

	ndsv1 "github.com/pilotd/pilotd/proto/nds/v1"
	"github.com/pilotd/pilotd/snapshot/value"
)

// NamesKey is what the names of one host in a name table depend on. A name table is the names of all hosts, one after
// the other.
type NamesKey struct {
	Service *value.Service
	// Members are the endpoints of a service whose name leads to them; nil of a service with addresses of its own.
	Members *value.Projection
	// Pods asks for the names of the single pods among the members, not for that of the host.
	Pods bool
	// IPv4 and IPv6 are the proxy's families.
	IPv4, IPv6 bool
	// Network and Cluster are those of the proxy, where there are members.
	Network, Cluster string
	// More are further ServiceEntries of the host.
	More *NamesLink
}

// NamesLink is one piece of a list of services; lists with equal content are made of the same pointers.
type NamesLink struct {
	Service *value.Service
	Next    *NamesLink
}

// Part returns the host.
func (k NamesKey) Part() string { return k.Service.Host }

// Objects returns the objects that define the host.
func (k NamesKey) Objects() []value.ObjectKey {
	out := k.Service.Objects()
	for l := k.More; l != nil; l = l.Next {
		out = objects(out, l.Service.Objects())
	}
	return out
}

// EncodeNames encodes the names of a host as fields of a NameTable; no bytes if it has none.
func EncodeNames(k NamesKey) ([]byte, []Fault) {
	m := &ndsv1.NameTable{Table: Names(k)}
	if len(m.Table) > 1 { // pods
		return MarshalSorted(m), nil
	}
	return Marshal(m), nil
}

// Names returns the names of a host, or of the pods that are its members, each with what is known of it.
func Names(k NamesKey) map[string]*ndsv1.NameTable_NameInfo {
	if k.Pods {
		return k.podNames()
	}
	ips := k.addresses()
	// A name table with "*" would capture every name.
	if len(ips) == 0 || k.Service.Host == "*" {
		return nil
	}
	info := &ndsv1.NameTable_NameInfo{Ips: ips, Registry: registryName(k.Service.Registry)}
	if k.Service.Registry == value.RegistryKubernetes && !strings.HasSuffix(k.Service.Host, clusterSet) {
		info.Shortname, info.Namespace = k.Service.Name, k.Service.Namespace
	}
	return map[string]*ndsv1.NameTable_NameInfo{k.Service.Host: info}
}

// clusterSet ends the hosts of services that several clusters define together. They have no short name, which is that
// of the cluster's own service.
const clusterSet = ".clusterset.local"

// registryName returns what agents know a registry by.
func registryName(r value.Registry) string {
	if r == value.RegistryKubernetes {
		return "Kubernetes"
	}
	return "External"
}

// addresses returns the addresses of the services themselves, and of the members. A Kubernetes Service has those of the
// proxy's families or, if it has none of them, its first.
func (k NamesKey) addresses() []string {
	if k.Members == nil && k.Service.Registry == value.RegistryKubernetes {
		all := plainAddresses(k.Service.Addresses)
		if fit := k.ofFamilies(all); len(fit) > 0 {
			return fit
		}
		return all[:min(1, len(all))]
	}
	var out []string
	add := func(list []string) {
		for _, a := range list {
			if !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	for e := range k.members {
		add(e.Addresses)
	}
	add(k.entryAddresses(k.Service))
	for l := k.More; l != nil; l = l.Next {
		add(k.entryAddresses(l.Service))
	}
	return out
}

// entryAddresses returns the addresses of a ServiceEntry: those that it names or, if it names none, those that were
// allocated to it.
func (k NamesKey) entryAddresses(svc *value.Service) []string {
	if len(svc.Addresses) > 0 {
		return plainAddresses(svc.Addresses)
	}
	return k.ofFamilies(plainAddresses(svc.AutoAddresses))
}

// plainAddresses returns the IP addresses of a list, without the ranges.
func plainAddresses(list []string) (out []string) {
	for _, a := range list {
		if _, err := netip.ParseAddr(a); err == nil {
			out = append(out, a)
		}
	}
	return out
}

// ofFamilies returns the addresses of the proxy's families.
func (k NamesKey) ofFamilies(list []string) (out []string) {
	for _, a := range list {
		if v4, v6 := value.Families([]string{a}); v4 && k.IPv4 || v6 && k.IPv6 {
			out = append(out, a)
		}
	}
	return out
}

// members yields the endpoints that can be asked for by name: those at the first port of the service, in the proxy's
// network, that are ready or need not be.
func (k NamesKey) members(yield func(*value.Endpoint) bool) {
	if k.Members == nil || len(k.Service.Ports) == 0 {
		return
	}
	for _, e := range k.Members.Inline {
		ready := e.Health == value.Healthy || e.Health == value.HealthUnknown || k.Service.PublishNotReady
		if !ready || !e.Serves(k.Service.Ports[0]) || !sameOrUnknown(e.Identity.Value().Network, k.Network) ||
			len(plainAddresses(e.Addresses)) < len(e.Addresses) {
			continue
		}
		if !yield(e) {
			return
		}
	}
}

// sameOrUnknown reports whether two networks or two clusters may be one.
func sameOrUnknown(a, b string) bool { return a == b || a == "" || b == "" }

// podNames returns the names of pods with a subdomain, as Kubernetes gives them: that of the pod in place of the
// service's. Of pods with one name in several clusters those of the proxy's own count.
func (k NamesKey) podNames() map[string]*ndsv1.NameTable_NameInfo {
	_, domain, ok := strings.Cut(k.Service.Host, ".")
	if !ok {
		return nil
	}
	here, there := map[string]*ndsv1.NameTable_NameInfo{}, map[string]*ndsv1.NameTable_NameInfo{}
	for e := range k.members {
		if e.SubDomain == "" {
			continue
		}
		names, short := there, e.HostName+"."+e.SubDomain
		if sameOrUnknown(e.Identity.Value().Cluster, k.Cluster) {
			names = here
		}
		info := names[short+"."+domain]
		if info == nil {
			info = &ndsv1.NameTable_NameInfo{Registry: registryName(k.Service.Registry), Shortname: short,
				Namespace: k.Service.Namespace}
			names[short+"."+domain] = info
		}
		info.Ips = append(info.Ips, e.Addresses...)
	}
	for name, info := range there {
		if here[name] == nil {
			here[name] = info
		}
	}
	return here
}
