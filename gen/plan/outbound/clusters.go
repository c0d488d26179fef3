package outbound

import (
	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/gen/plan/endpoints"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// clusterTables hold the clusters.
type clusterTables struct {
	Outbound checked.Table[gen.ClusterKey, encodecache.Entry]
	static   checked.Table[staticCluster, encodecache.Entry]
	crowds   checked.Table[crowdKey, crowd]
}

// staticCluster is one of the clusters that exist whatever services there are.
type staticCluster struct {
	name string
	gen.StaticClusterKey
}

func newClusterTables(f *checked.Faults) clusterTables {
	return clusterTables{
		Outbound: checked.Leaves(f, "cluster", xdstype.ClusterURL, gen.EncodeCluster),
		static: checked.Leaves(f, "cluster", xdstype.ClusterURL,
			func(k staticCluster) ([]byte, []gen.Fault) { return gen.SealCluster(k.make()) }),
		crowds: newCrowds(f),
	}
}

func (k staticCluster) make() *clusterpb.Cluster {
	switch k.name {
	case gen.PassthroughOut:
		return gen.PassthroughCluster(k.StaticClusterKey)
	case gen.PassthroughInbound:
		return gen.InboundPassthroughCluster(k.StaticClusterKey)
	case gen.DynamicDNSOut:
		return gen.DynamicDNSCluster(k.StaticClusterKey)
	}
	return gen.BlackHoleCluster(k.StaticClusterKey)
}

// Part returns the name of the cluster.
func (k staticCluster) Part() string { return k.name }

// ClustersOf returns the outbound clusters of one service (every port and subset) and the endpoint assignments that
// they name.
func (t *Tables) ClustersOf(n *snapshot.Snapshot, sc *scope.Scope, svc *value.Service) (clusters []*encodecache.Entry,
	assignments []*classes.Assignment) {
	o := upstream{mesh: n.Mesh.Clusters, scope: sc, service: svc, rule: sc.DestinationRule(n, svc)}
	if p := n.PeerPolicies(svc.Namespace); p.Plain() {
		o.peers = p
	}
	if p := n.Projection(svc.ServiceKey); p.Any {
		o.projection = p
	}
	subsets := t.subsetsOf(&o)
	for _, port := range svc.Ports {
		whole := o.key(port, "")
		if port.Protocol == value.UDP || !gen.HasCluster(whole) {
			continue
		}
		keys := []gen.ClusterKey{whole}
		for _, s := range subsets {
			keys = append(keys, o.key(port, s.Name))
		}
		for _, k := range keys {
			if !gen.HasCluster(k) {
				continue
			}
			c := t.Clusters.Outbound.Get(k)
			clusters = append(clusters, c)
			if !c.Absent() && gen.ClusterAsks(k) {
				assignments = append(assignments, t.endpoints.Get(o.assignment(k)))
			}
		}
	}
	return clusters, assignments
}

// upstream is one service as the proxies of a scope call it.
type upstream struct {
	mesh       *value.ClusterSettings
	scope      *scope.Scope
	service    *value.Service
	rule       *value.DestinationRule
	projection *value.Projection
	peers      *value.PeerPolicies // nil unless they speak of plain text
}

// key returns the key of the cluster for a port, or for a subset of it.
func (o *upstream) key(port *value.Port, subset string) gen.ClusterKey {
	traits := o.scope.Traits
	k := gen.ClusterKey{
		Mesh: o.mesh, Service: o.service, Port: port, Projection: o.projection, Peers: o.peers, Rule: o.rule,
		Subset: subset,
		Client: gen.ClusterClient{Type: traits.Type, Filters: traits.Filters & gen.ClusterExtensions()},
	}
	if traits.Type == value.Proxyless {
		k.Client.Filters = 0
	}
	if r := o.service.Resolution; r == value.DNSLB || r == value.DNSRoundRobin {
		k.Client.IPv6Only = traits.IPv6 && !traits.IPv4
		k.Order = o.order(k)
		k.Order.Labels = "" // names are ranked by their localities alone
	}
	return k
}

// order returns how the endpoints of a cluster rank for the clients of the scope.
func (o *upstream) order(k gen.ClusterKey) gen.Ordering {
	policy := gen.PolicyOf(o.mesh, o.rule, k.Subset, k.Port.Number)
	sc := o.scope
	return gen.OrderingOf(gen.LocalityRuleOf(o.mesh, o.service, policy), &gen.ClientLocation{
		Locality: sc.Locality, Network: sc.Network, Cluster: sc.ClusterID, Node: sc.Node, Labels: sc.Labels})
}

// assignment returns the Key of the endpoint assignment that a cluster asks for.
func (o *upstream) assignment(k gen.ClusterKey) endpoints.Key {
	a := endpoints.Key{Name: gen.ClusterName(k.Port.Number, k.Subset, o.service.Host), Order: o.order(k)}
	a.Selection = endpoints.Selection{
		Service: o.service.ServiceKey, Defined: o.service.Object, Port: k.Port.Name,
		Subset: value.LabelsKey(o.rule.SubsetLabels(k.Subset)),
		Local:  o.service.NodeLocal, Draining: gen.KeepsDraining(o.service),
		Form:   gen.EndpointFormOf(k),
		Labels: a.Order.Labels, Once: k.Client.Type == value.Proxyless,
		None: o.service.Resolution == value.DNSLB || o.service.Resolution == value.DNSRoundRobin,
	}
	if a.Selection.Local {
		a.Selection.Node = o.scope.Node
	}
	return a
}

// StaticClusters returns those that every proxy of the scope has whatever services there are: BlackHoleCluster, the
// passthrough ones, and the one for which the proxy resolves names itself.
func (t *Tables) StaticClusters(n *snapshot.Snapshot, sc *scope.Scope) []*encodecache.Entry {
	get := func(name string, k gen.StaticClusterKey) *encodecache.Entry {
		return t.Clusters.static.Get(staticCluster{name, k})
	}
	switch sc.Traits.Type {
	case value.Proxyless:
		return nil
	case value.Router: // it has no connections to pass through
		return []*encodecache.Entry{get(gen.BlackHole, gen.StaticClusterKey{Mesh: n.Mesh.Connections})}
	}
	out := []*encodecache.Entry{
		get(gen.BlackHole, gen.StaticClusterKey{Mesh: n.Mesh.Connections}),
		get(gen.PassthroughOut,
			gen.StaticClusterKey{Mesh: n.Mesh.Connections, Filters: sc.Traits.Filters & gen.ClusterExtensions()}),
		get(gen.PassthroughInbound, gen.StaticClusterKey{Mesh: n.Mesh.Connections, IPv4: sc.Traits.IPv4,
			IPv6: sc.Traits.IPv6}),
	}
	if LacksDynamicDNS(n, &sc.Facts) {
		noteLack(t.faults, n.Mesh.Object())
	}
	if d := DynamicDNS(n, sc); d.Served {
		out = append(out, get(gen.DynamicDNSOut, gen.StaticClusterKey{Mesh: n.Mesh.Connections, DynamicDNS: d,
			Outbound: n.Mesh.Outbound, Defaults: n.Mesh.Clusters.TLS}))
	}
	return out
}
