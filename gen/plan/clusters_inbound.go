package plan

import (
	"slices"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// inboundClusterHoles are where inbound clusters of a kind differ.
func inboundClusterHoles() []encodecache.Hole {
	path := func(numbers ...int) (out []encodecache.Step) {
		for _, n := range numbers {
			out = append(out, encodecache.Step{Field: n})
		}
		return out
	}
	return []encodecache.Hole{
		{Path: path(1), Text: gen.ClusterTextName},
		{Path: path(25), Text: gen.ClusterTextMetadata},
		{Path: path(28), Text: gen.ClusterTextStat},
		{Path: path(33, 1), Text: gen.ClusterTextName},             // of its own assignment,
		{Path: path(33, 2, 2, 1, 1), Text: gen.ClusterTextAddress}, // whose one endpoint has an address
	}
}

// inboundCluster is one of the workload's own clusters: what all of its kind share, and its names. It holds no bytes:
// they are put together when it is sent.
type inboundCluster struct {
	shared *encodecache.Stencil
	names  gen.InboundClusterNames
}

// entry is the cluster as a resource.
func (c *inboundCluster) entry() *encodecache.Entry {
	texts := c.names.Texts()
	return encodecache.NewEntry(
		xdstype.ClusterURL,
		texts[gen.ClusterTextName],
		c.shared.Sum(texts),
		c.shared.Len(texts),
		c.fragments,
	)
}

// fragments yields the one that the cluster is made of.
func (c *inboundCluster) fragments(yield func(*encodecache.Fragment) bool) {
	yield(c.shared.Fill(c.names.Texts(), c))
}

// Part is the name of the cluster.
func (c *inboundCluster) Part() string { return gen.InboundClusterName(int(c.names.Target)) }

// Objects are what defines the services at the port, the DestinationRules that speak of its connections, and the mesh's
// configuration.
func (c *inboundCluster) Objects() []value.ObjectKey {
	return slices.Concat(c.names.Rule.Objects(), c.names.Objects(), []value.ObjectKey{(*value.Mesh)(nil).Object()})
}

// inboundClusters are those of the ports that a proxy's Sidecar object declares, or else of those that its services
// have. Without interception the latter have none: the proxy would have to listen where the application does.
func (t *Tables) inboundClusters(n *snapshot.Snapshot, sc *Scope, own *Own) (out []*encodecache.Entry) {
	if sc.Traits.Type != value.SidecarProxy {
		return nil
	}
	add := func(k gen.InboundClusterKey, names gen.InboundClusterNames) {
		if shared := t.clusters.inbound.Get(k); !shared.Empty() {
			out = append(out, (&inboundCluster{shared, names}).entry())
		}
	}
	seen := map[int]bool{}
	if declaresPorts(sc) {
		for _, i := range sc.Sidecar.Spec.GetIngress() {
			if number := int(i.GetPort().GetNumber()); !seen[number] {
				seen[number] = true
				add(ingressKey(n, sc, own, i))
			}
		}
		return out
	}
	if sc.Traits.Interception == value.NoInterception {
		return nil
	}
	for _, first := range own.Targets {
		if !seen[first.Number] {
			seen[first.Number] = true
			add(inboundKey(n, sc, own, first))
		}
	}
	return out
}

// declaresPorts reports whether the Sidecar object of a scope declares the inbound ports of its workloads.
func declaresPorts(sc *Scope) bool { return sc.Sidecar != nil && len(sc.Sidecar.Spec.GetIngress()) > 0 }

// inboundKey is that of the cluster at the target port of first, which decides over the others there.
func inboundKey(n *snapshot.Snapshot, sc *Scope, own *Own, first Target) (gen.InboundClusterKey,
	gen.InboundClusterNames) {
	k, names := targetKey(n, sc, first)
	k.Leads = gen.InboundLeads(n.Mesh)
	hosts := map[string]bool{first.Service.Host: true}
	for _, t := range own.Targets {
		if t.Number == first.Number && t.Port.Number == first.Port.Number && !hosts[t.Service.Host] {
			hosts[t.Service.Host] = true
			names.Services = append(names.Services, t.Service)
		}
	}
	return k, names
}

// targetKey is that of a cluster for one service port at one of the workload's own, but for where it leads.
func targetKey(n *snapshot.Snapshot, sc *Scope, t Target) (gen.InboundClusterKey, gen.InboundClusterNames) {
	k := gen.InboundClusterKey{Mesh: n.Mesh, Protocol: t.Port.Protocol, IPv4: sc.Traits.IPv4}
	// Selectors choose clients; what a rule says to servers is said to all.
	if sc.Service(n, t.Service.Host) != nil {
		if r := n.RulesFor(sc.Namespace, t.Service).Select(sc.Namespace, nil); r != nil &&
			r.Spec.GetTrafficPolicy() != nil {
			k.Rule, k.Port = r, t.Port.Number
		}
	}
	if s := sc.Sidecar; s != nil {
		if gen.IngressPool(s, t.Number) != nil {
			k.Sidecar, k.Ingress = s, t.Number
		} else if gen.IngressPool(s, 0) != nil {
			k.Sidecar = s
		}
	}
	return k, gen.InboundClusterNames{
		Services: []*value.Service{t.Service}, Rule: k.Rule, IPv4: k.IPv4, Target: int32(t.Number),
		Stat: gen.InboundClusterStat(n.Mesh, t.Service, t.Port, t.Number),
	}
}
