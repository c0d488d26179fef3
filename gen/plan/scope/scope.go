package scope

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"unique"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Facts are all that outbound configuration may depend on about a proxy, as verdicts: comparable, so that proxies with
// equal Facts share everything outbound. What nothing in the mesh reads is left at its zero value.
type Facts struct {
	Traits    value.Traits
	Namespace string
	// Sidecar is the Sidecar object that selects the proxy; nil for the default scope and for routers.
	Sidecar *value.Sidecar
	// Labels is value.LabelsKey of those of the proxy's labels that a selector reads.
	Labels    string
	ClusterID string
	Network   string
	// OwnPorts are the ports of a router's services for which it listens at others of its own; see gateway.OwnPorts.
	OwnPorts string
	// Policies are what a router asks of the requests and connections that it gets; none of others.
	Policies value.Policies
	// Locality and Node are set only where endpoints depend on them.
	Locality value.Locality
	Node     string
}

// Scope answers what the proxies with some Facts may see: which services, under which VirtualService and
// DestinationRule. It holds no state of the mesh: every question takes the Snapshot, and the answer is a function of
// both.
type Scope struct {
	Facts
	// Labels are the proxy's labels that a selector reads.
	Labels value.Labels

	// imports are those of the Sidecar's egress; nil: everything that is exported to the namespace. Sidecars of a mesh
	// import much the same, and 10,000 of them are asked for it in a row: one pointer each, to what is read often.
	imports []unique.Handle[hostImport]
	exclude []hostImport // what the egress takes out of the imports: "~namespace/host"
	// parts are the listeners of an egress that names ports; the imports are then those of all parts. listener is set
	// in a part.
	Parts    []*Scope
	listener *value.EgressListener
	trims    *Trims
	insiders *insiders // of an outsider's scope while its resources are made; else nil
	asked    *inquiry  // what is asked while something is made for scopes that answer alike; else nil
}

// hostImport is one "namespace/host" of a Sidecar's egress.
type hostImport struct{ namespace, host string }

// New makes the Scope of the proxies with some Facts. labels are those that a selector reads.
func New(f Facts, labels value.Labels, t *Trims) *Scope {
	sc := &Scope{Facts: f, Labels: labels, trims: t}
	if f.Sidecar == nil || len(f.Sidecar.Egress) == 0 {
		return sc
	}
	sc.imports = []unique.Handle[hostImport]{}
	for _, e := range f.Sidecar.Egress {
		sc.take(e.Hosts)
	}
	if sc.Parts = sc.partsOf(); sc.Parts != nil {
		sc.exclude = nil // each holds in its own part
	}
	return sc
}

// take adds lines of a Sidecar's egress to the imports and to what is taken out of them. "~/*" alone is the way to
// import nothing.
func (sc *Scope) take(hosts []string) {
	for _, h := range hosts {
		ns, host, _ := strings.Cut(h, "/")
		ns, excluded := strings.CutPrefix(ns, "~")
		switch ns {
		case "": // "~/host", no namespace, takes out of all
			ns = "*"
		case ".":
			ns = sc.Namespace
		}
		if excluded {
			sc.exclude = append(sc.exclude, hostImport{ns, host})
		} else {
			sc.imports = append(sc.imports, unique.Make(hostImport{ns, host}))
		}
	}
}

// ask is the answer to a question, which is noted where somebody wants to know.
func (sc *Scope) ask(q question) bool {
	yes := sc.answer(&q)
	if sc.asked != nil {
		sc.asked.note(q, yes)
	}
	return yes
}

// answer is the answer to a question, which is not noted.
func (sc *Scope) answer(q *question) bool {
	switch q.about {
	case ofPlace:
		return sc.Namespace == q.namespace
	case ofImport:
		return sc.imported(q.namespace, q.host)
	case ofExclusion:
		return sc.excludes(q.namespace, q.host)
	case ofAlias:
		return sc.namesAlias(q.namespace, q.host, q.alias)
	case ofLabel:
		got, ok := sc.Labels[q.host]
		return ok && got == q.alias
	}
	return sc.imports == nil
}

// HasLabels reports whether the scope's proxies have all of labels.
func (sc *Scope) HasLabels(labels value.Labels) bool {
	if sc.asked != nil {
		for _, k := range slices.Sorted(maps.Keys(labels)) {
			sc.ask(question{about: ofLabel, host: k, alias: labels[k]})
		}
	}
	return sc.Labels.Contains(labels)
}

// Imports yields the namespace and the host of each import; either may be a pattern.
func (sc *Scope) Imports() iter.Seq2[string, string] {
	return func(yield func(namespace, host string) bool) {
		for _, handle := range sc.imports {
			if i := handle.Value(); !yield(i.namespace, i.host) {
				return
			}
		}
	}
}

// Wide reports whether the scope is the default one: everything that is exported to the proxy's namespace.
func (sc *Scope) Wide() bool {
	if sc.asked != nil {
		return sc.ask(question{about: ofWidth})
	}
	return sc.imports == nil
}

// Imported reports whether an import names host in namespace ns and no exclusion does. host may be a pattern, which a
// wider or an equal pattern imports, and which a narrower one touches; only a pattern that covers all of it excludes
// it.
func (sc *Scope) Imported(ns, host string) bool {
	if sc.asked != nil {
		return sc.ask(question{about: ofImport, namespace: ns, host: host})
	}
	return sc.imported(ns, host)
}

func (sc *Scope) imported(ns, host string) bool {
	if sc.imports == nil {
		return true
	}
	return !sc.excludes(ns, host) && slices.ContainsFunc(sc.imports, func(handle unique.Handle[hostImport]) bool {
		i := handle.Value()
		return i.in(ns) && (value.HostMatches(i.host, host) || strings.HasPrefix(host, "*") &&
			value.HostMatches(host, i.host))
	})
}

// importsAlias reports whether the imports by which the scope has svc name another host for it too: those of svc's
// namespace if one of them names svc, else those of all.
func (sc *Scope) importsAlias(svc *value.Service, alias string) bool {
	return sc.ask(question{about: ofAlias, namespace: svc.Namespace, host: svc.Host, alias: alias})
}

func (sc *Scope) namesAlias(by, host, alias string) bool {
	if sc.imports == nil {
		return true
	}
	named := func(namespace, host string) bool {
		return slices.ContainsFunc(sc.imports, func(handle unique.Handle[hostImport]) bool {
			i := handle.Value()
			return i.namespace == namespace && value.HostMatches(i.host, host)
		})
	}
	if !named(by, host) {
		by = "*"
	}
	return named(by, alias)
}

// excluded reports whether an exclusion names host in namespace ns.
func (sc *Scope) excluded(ns, host string) bool {
	return sc.ask(question{about: ofExclusion, namespace: ns, host: host})
}

func (sc *Scope) excludes(ns, host string) bool {
	return slices.ContainsFunc(sc.exclude, func(i hostImport) bool {
		return i.in(ns) && value.HostMatches(i.host, host)
	})
}

func (i hostImport) in(ns string) bool { return i.namespace == "*" || i.namespace == ns }

// Service returns the service that host means for the proxy: among those that it may see, the one of its own namespace,
// else Kubernetes' before others, else one that is exported to some namespaces before one for all, else the oldest. nil
// if it sees none. In an explicit scope a service that is only known as a destination of an imported VirtualService has
// just the ports that the destinations name.
func (sc *Scope) Service(n *snapshot.Snapshot, host string) *value.Service {
	return sc.among(n, host, n.ServicesOfHost(host))
}

// among works like Service, for callers that have the services of the host at hand.
func (sc *Scope) among(n *snapshot.Snapshot, host string, services iter.Seq[*value.Service]) *value.Service {
	var best *value.Service
	for svc := range services {
		if sc.Sees(svc.Export) && sc.Imported(svc.Namespace, host) &&
			(best == nil || sc.prefer(svc, best)) {
			best = svc
		}
	}
	if best == nil && !sc.Wide() {
		return sc.inferred(n, host)
	}
	return best
}

func (sc *Scope) prefer(a, b *value.Service) bool {
	if own := sc.In(a.Namespace); own != sc.In(b.Namespace) {
		return own
	}
	if a.Registry != b.Registry {
		return a.Registry == value.RegistryKubernetes
	}
	if a.Export.Public != b.Export.Public {
		return b.Export.Public
	}
	if a.Created != b.Created {
		return a.Created < b.Created
	}
	return a.Namespace < b.Namespace
}

// inferred returns the service of a host that an imported VirtualService routes to.
func (sc *Scope) inferred(n *snapshot.Snapshot, host string) *value.Service {
	var ports []int
	found, all := false, false
	for vs := range n.VirtualServicesTo(host) {
		if sc.SeesVirtualService(vs) && slices.Contains(vs.Gateways, "mesh") {
			found = true
			p, whole := sc.destinationPorts(vs, host)
			ports, all = append(ports, p...), all || whole
		}
	}
	if !found || !all && len(ports) == 0 {
		return nil
	}
	var best *value.Service // of the client's own namespace, else of the first by name
	for svc := range n.ServicesOfHost(host) {
		if sc.Sees(svc.Export) && !sc.excluded(svc.Namespace, host) &&
			(best == nil || sc.In(svc.Namespace)) {
			best = svc
		}
	}
	if best == nil || all {
		return best
	}
	return sc.trim(best, ports)
}

// Services yields the services that the proxy sees, one for each host, by host.
func (sc *Scope) Services(n *snapshot.Snapshot) iter.Seq[*value.Service] {
	if sc.Wide() {
		return sc.each(n, n.Services())
	}
	return func(yield func(*value.Service) bool) {
		for _, host := range slices.Sorted(maps.Keys(sc.Hosts(n))) {
			if svc := sc.Service(n, host); svc != nil && !yield(svc) {
				return
			}
		}
	}
}

// ServicesOnPort yields the services that the proxy sees and that have a port of that number, by host.
func (sc *Scope) ServicesOnPort(n *snapshot.Snapshot, port int) iter.Seq[*value.Service] {
	services := sc.Services(n)
	if sc.Wide() {
		services = sc.each(n, n.ServicesOnPort(port))
	}
	return func(yield func(*value.Service) bool) {
		for svc := range services {
			if svc.PortByNumber(port) != nil && !yield(svc) {
				return
			}
		}
	}
}

// each yields what the proxy sees under the hosts of candidates, which come by host.
func (sc *Scope) each(n *snapshot.Snapshot, candidates iter.Seq[*value.Service]) iter.Seq[*value.Service] {
	return func(yield func(*value.Service) bool) {
		last := ""
		for svc := range candidates {
			if svc.Host == last {
				continue
			}
			last = svc.Host
			if seen := sc.Service(n, svc.Host); seen != nil && !yield(seen) {
				return
			}
		}
	}
}

// DestinationRule returns the DestinationRule that applies when the proxy calls svc, merged; nil if there is none.
func (sc *Scope) DestinationRule(n *snapshot.Snapshot, svc *value.Service) *value.DestinationRule {
	return sc.destinationRules(n, svc).Select(sc.Namespace, sc.HasLabels)
}

// SeesVirtualService reports whether vs is exported to the proxy's namespace and, in an explicit scope, imported by one
// of its hosts. Whether it binds to the mesh or to a gateway is for the caller to ask.
func (sc *Scope) SeesVirtualService(vs *value.VirtualService) bool {
	return sc.Sees(vs.Export) &&
		slices.ContainsFunc(vs.Hosts, func(h string) bool { return sc.Imported(vs.Namespace, h) })
}
