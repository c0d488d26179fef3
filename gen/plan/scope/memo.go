package scope

import (
	"slices"
	"strings"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Memo is what was found out about one Snapshot for some scope and holds for all of them: it spares the next scopes
// the search. It lives while the Snapshot is planned. Owned by the config goroutine; nil remembers nothing.
type Memo struct {
	Snapshot *snapshot.Snapshot
	hosts    map[string]*hostFacts
	rules    map[rulesAsked]snapshot.Rules
}

// rulesAsked is a service and the namespace of its clients.
type rulesAsked struct {
	client  string
	service *value.Service
}

// hostFacts is what there is under one host.
type hostFacts struct {
	services []*value.Service
	// named are the VirtualServices of the mesh that name the host or a pattern that covers it, the most specific
	// first.
	named []namedBy
	// namespace is the one in whose clients the host has a short name; empty if it has none.
	namespace string
	// alone: no other host of the Snapshot may have one of its domains.
	alone bool
	// domains are those of its virtual host, by what they differ in while it is alone.
	domains map[domainsAsked]string
}

// namedBy are the VirtualServices that name one pattern, oldest first.
type namedBy struct {
	pattern  string
	services []*value.VirtualService
}

// maxRules bounds the rules that are remembered: those of a client's namespace are asked for one after the other, and
// seldom again.
const maxRules = 16 << 10

// domainsAsked is what the domains of a virtual host without rivals depend on.
type domainsAsked struct {
	service                *value.Service
	own, v4, v6, proxyless bool
}

// NewMemo makes the memo of a Snapshot, which knows nothing yet.
func NewMemo(n *snapshot.Snapshot) *Memo {
	return &Memo{Snapshot: n, hosts: map[string]*hostFacts{}, rules: map[rulesAsked]snapshot.Rules{}}
}

// host returns what there is under a host in n, which is k's own Snapshot.
func (k *Memo) host(n *snapshot.Snapshot, host string) *hostFacts {
	if k == nil {
		return newHostFacts(n, host)
	}
	f := k.hosts[host]
	if f == nil {
		f = newHostFacts(n, host)
		f.alone, f.domains = standsAlone(n, host), map[domainsAsked]string{}
		f.namespace = namespaceOf(n, host)
		k.hosts[host] = f
	}
	return f
}

func newHostFacts(n *snapshot.Snapshot, host string) *hostFacts {
	f := &hostFacts{services: slices.Collect(n.ServicesOfHost(host))}
	for p := range snapshot.Patterns(host) {
		var services []*value.VirtualService
		for vs := range n.VirtualServicesOfHost(p) {
			if slices.Contains(vs.Gateways, MeshGateway) {
				services = append(services, vs)
			}
		}
		if len(services) > 0 {
			f.named = append(f.named, namedBy{p, services})
		}
	}
	return f
}

// standsAlone reports whether no client could take a domain of a host's virtual host for another one's, and no other
// name stands for it.
func standsAlone(n *snapshot.Snapshot, host string) bool {
	for range n.AliasesOf(host) {
		return false
	}
	for _, name := range domainsAnywhere(n, host) {
		for _, r := range claimants(n, name, func(short string) []string { return namesakes(n, short) }) {
			if r != host && (hasService(n, r) || hasVirtualService(n, r)) {
				return false
			}
		}
	}
	return true
}

// DomainList returns the domains of an owner's virtual host, by spaces.
func (v PortView) DomainList(c Owner) string {
	if v.Memo == nil {
		return strings.Join(v.domains(c), " ")
	}
	f := v.Memo.host(v.Snapshot, c.Host)
	if !f.alone {
		return strings.Join(v.domains(c), " ")
	}
	t := v.Scope.Traits
	k := domainsAsked{c.Service, f.namespace != "" && v.Scope.In(f.namespace), t.IPv4, t.IPv6, t.Type == value.Proxyless}
	list, ok := f.domains[k]
	if !ok {
		list = strings.Join(v.domains(c), " ")
		f.domains[k] = list
	}
	return list
}

// Meant returns the service that a host means for the scope; nil if it sees none.
func (v PortView) Meant(host string) *value.Service {
	return v.Scope.among(v.Snapshot, host, slices.Values(v.Memo.host(v.Snapshot, host).services))
}

// DestinationRuleOf returns the DestinationRule that applies when the Scope's proxies call a service; nil if there is
// none.
func (v PortView) DestinationRuleOf(svc *value.Service) *value.DestinationRule {
	if v.Memo == nil {
		return v.Scope.DestinationRule(v.Snapshot, svc)
	}
	v.Scope.noteRules(v.Snapshot, svc)
	k := rulesAsked{v.Scope.Namespace, svc}
	rules, ok := v.Memo.rules[k]
	if !ok {
		if len(v.Memo.rules) >= maxRules {
			clear(v.Memo.rules)
		}
		rules = v.Snapshot.RulesFor(v.Scope.Namespace, svc)
		v.Memo.rules[k] = rules
	}
	return rules.Select(v.Scope.Namespace, v.Scope.HasLabels)
}
