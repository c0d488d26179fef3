package inbound

import (
	"slices"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/workload"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Facts are all that a workload's own configuration may depend on about its proxy. Nothing outbound depends on the
// Targets and the Addresses. Immutable.
type Facts struct {
	Traits    value.Traits
	Namespace string
	// Sidecar is the Sidecar object in force for the workload; nil if there is none.
	Sidecar *value.Sidecar
	// Targets are the service ports that the workload serves, in the order of workload.Targets.
	Targets []workload.Target
	// Peers are what the workload asks of its clients.
	Peers value.PeerModes
	// Policies are what the workload asks of the requests and connections that it gets.
	Policies value.Policies
	// Addresses are the proxy's own, where something depends on them: a headless service of which it is a member, or
	// real ports (interception mode NONE). They are nil otherwise, so that workloads may have equal Facts.
	Addresses []string
}

// Reads reports whether the workload's own configuration depends on what is known of one of these hosts.
func (f *Facts) Reads(hosts map[string]struct{}) bool {
	if len(hosts) == 0 {
		return false
	}
	if p := f.Policies.Asked.Provider; p != nil {
		if _, ok := hosts[p.Host]; ok {
			return true
		}
	}
	return slices.ContainsFunc(f.Targets, func(t workload.Target) bool {
		_, ok := hosts[t.Service.Host]
		return ok
	})
}

// maker makes the overlay of one class. It lives for one computation.
type maker struct {
	tables *Tables
	n      *snapshot.Snapshot
	facts  *Facts
	sees   func(host string) bool
}

// declaresPorts reports whether the Sidecar object in force declares the inbound ports of the workload.
func (m *maker) declaresPorts() bool {
	return m.facts.Sidecar != nil && len(m.facts.Sidecar.Ingress) > 0
}

// targetKey returns the Key of the cluster for one service port at one of the workload's own, but for where it leads.
func (m *maker) targetKey(t workload.Target) (gen.InboundClusterKey, gen.InboundClusterNames) {
	k := gen.InboundClusterKey{Mesh: m.n.Mesh.Connections, Protocol: t.Port.Protocol, IPv4: m.facts.Traits.IPv4}
	// Selectors choose clients; what a rule says to servers is said to all.
	if m.sees(t.Service.Host) {
		if r := m.n.RulesFor(m.facts.Namespace, t.Service).Select(m.facts.Namespace, value.Labels(nil).Contains); r != nil &&
			r.Policy != nil {
			k.Rule, k.Port = r, t.Port.Number
		}
	}
	if s := m.facts.Sidecar; s != nil {
		if k.Pool = s.PoolOf(t.Number); k.Pool != nil {
			k.Sidecar = value.Meta{Cluster: s.Cluster, Namespace: s.Namespace, Name: s.Name}
		}
	}
	return k, gen.InboundClusterNames{
		Services: []*value.Service{t.Service}, Rule: k.Rule, IPv4: k.IPv4, Target: int32(t.Number),
		Stat: gen.InboundClusterStat(m.n.Mesh, t.Service, t.Port, t.Number),
	}
}
