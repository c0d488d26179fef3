package scope

import (
	"iter"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Rule is a row of what depends on what: what a change of objects of some kinds affects. What it affects in common
// resources is marked here, as hosts; what it affects beside them is found by those who have it.
type Rule struct {
	Kinds []value.Kind
	// mark marks the hosts that the changes of these kinds affect; nil where they affect none.
	mark func(*step)
	// Else says what else a change affects, and who finds that out.
	Else string
}

// Rules returns the rows. There is one for each kind that is served: a kind without one is a kind of which a change
// reaches nobody.
func Rules() []Rule {
	return []Rule{
		{[]value.Kind{value.KindService, value.KindServiceEntry}, (*step).services,
			"classes of the workloads that the service selects: package plan, by workload.Workload.DependsOn"},
		{[]value.Kind{value.KindEndpointSlice, value.KindPod, value.KindNode, value.KindWorkloadEntry},
			(*step).projections, "endpoints: their own lane; classes of the workloads at an address: package plan"},
		{[]value.Kind{value.KindVirtualService}, (*step).virtualServices,
			"routes and chains of routers: package gateway"},
		{[]value.Kind{value.KindDestinationRule}, (*step).destinationRules,
			"routes and chains of routers that lead to the hosts: package gateway"},
		{[]value.Kind{value.KindPeerAuthentication}, (*step).peers,
			"inbound ports of the workloads that it selects are facts of their classes: package plan"},
		{[]value.Kind{value.KindAuthorizationPolicy, value.KindRequestAuthentication}, nil,
			"nothing that others have: the policies of a workload are facts of its class, or of its Scope: package plan"},
		{[]value.Kind{value.KindGateway}, nil, "servers of the routers that it selects: package gateway"},
		{[]value.Kind{value.KindSidecar}, nil,
			"the Sidecar of a workload is a fact of its Scope and of its class: package plan"},
		{[]value.Kind{value.KindNamespace}, nil, "nothing: its values are in those of the services in it"},
		{[]value.Kind{value.KindMeshConfig}, nil, "everything: a Delta says so by All"},
	}
}

// AffectedBy works out what d, the difference between old and n, touches.
func AffectedBy(old, n *snapshot.Snapshot, d *snapshot.Delta) *Affected {
	if d.All || old.Mesh == nil {
		return &Affected{All: true}
	}
	s := &step{
		Affected: Affected{Hosts: map[string]struct{}{}, Routes: map[string]struct{}{}, Delta: d, Memo: NewMemo(n)},
		old:      old, n: n,
		done: map[string]struct{}{}, seen: map[nearAt]struct{}{}, joined: map[joinedAt]struct{}{},
	}
	for _, r := range Rules() {
		if r.mark != nil {
			r.mark(s)
		}
	}
	for h := range s.Routes {
		if !hasService(old, h) || !hasService(n, h) {
			s.Wide = true
		}
	}
	s.findPorts(old, n)
	return &s.Affected
}

// services marks what is made from services that changed, and projections what is made from those of which a Snapshot
// knows other endpoints now.
func (s *step) services() {
	for k := range s.Delta.Services {
		s.service(k)
	}
}

func (s *step) projections() {
	for k := range s.Delta.Projections {
		if _, both := s.Delta.Services[k]; !both {
			s.service(k)
		}
	}
}

func (s *step) virtualServices() {
	for _, c := range snapshot.Of[*value.VirtualService](s.Delta.Objects) {
		s.virtualService(c.Old, c.New)
	}
}

func (s *step) destinationRules() {
	for _, c := range snapshot.Of[*value.DestinationRule](s.Delta.Objects) {
		s.rule(c.Old)
		s.rule(c.New)
	}
}

// peers marks the services of namespaces whose workloads may have begun or ceased to take plain text alone. Nothing
// else that PeerAuthentications say is for clients.
func (s *step) peers() {
	in := map[string]bool{}
	for k := range snapshot.Of[*value.PeerAuthentication](s.Delta.Objects) {
		in[k.Namespace] = true
	}
	if len(in) == 0 {
		return
	}
	mark := func(services iter.Seq[*value.Service]) {
		for svc := range services {
			old, now := s.old.PeerPolicies(svc.Namespace), s.n.PeerPolicies(svc.Namespace)
			if old != now && (old.Plain() || now.Plain()) {
				s.host(svc.Host)
			}
		}
	}
	if in[s.n.Mesh.RootNamespace] {
		mark(s.n.Services())
		return
	}
	for namespace := range in {
		mark(s.n.ServicesIn(namespace))
	}
}
