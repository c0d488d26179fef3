package inbound

import (
	"slices"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/workload"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// cluster is one of the workload's own clusters: what all of its kind share, and its names. It holds no bytes: they are
// put together when it is sent.
type cluster struct {
	shared *encodecache.Template
	names  gen.InboundClusterNames
}

// entry returns the cluster as a resource.
func (c *cluster) entry() *encodecache.Entry {
	texts := c.names.Texts()
	return encodecache.NewEntry(xdstype.ClusterURL, texts[gen.ClusterTextName],
		encodecache.Content{Version: c.shared.Sum(texts), Size: c.shared.Len(texts), Parts: c.fragments})
}

// fragments yields the one that the cluster is made of.
func (c *cluster) fragments(yield func(*encodecache.Fragment) bool) {
	yield(c.shared.Fill(c.names.Texts(), c))
}

// Part returns the name of the cluster.
func (c *cluster) Part() string { return gen.InboundClusterName(int(c.names.Target)) }

// Objects returns what defines the services at the port, the DestinationRules that speak of its connections, and the
// mesh's configuration.
func (c *cluster) Objects() []value.ObjectKey {
	return slices.Concat(c.names.Rule.Objects(), c.names.Objects(), []value.ObjectKey{(*value.Mesh)(nil).Object()})
}

// clusters returns the clusters of the ports that the Sidecar object declares, or else of those that the workload's
// services have. Without interception the latter have none: the proxy would have to listen where the application does.
func (m *maker) clusters() (out []*encodecache.Entry) {
	if m.facts.Traits.Type != value.SidecarProxy {
		return nil
	}
	add := func(k gen.InboundClusterKey, names gen.InboundClusterNames) {
		if shared := m.tables.clusters.Get(k); !shared.Empty() {
			out = append(out, (&cluster{shared, names}).entry())
		}
	}
	seen := map[int]bool{}
	if m.declaresPorts() {
		for _, i := range m.facts.Sidecar.Ingress {
			if number := i.Port.Number; !seen[number] {
				seen[number] = true
				add(m.ingressKey(i))
			}
		}
		return out
	}
	if m.facts.Traits.Interception == value.NoInterception {
		return nil
	}
	for _, first := range m.facts.Targets {
		if !seen[first.Number] {
			seen[first.Number] = true
			add(m.clusterKey(first))
		}
	}
	return out
}

// clusterKey returns the Key of the cluster at the target port of first, which decides over the others there.
func (m *maker) clusterKey(first workload.Target) (gen.InboundClusterKey, gen.InboundClusterNames) {
	k, names := m.targetKey(first)
	k.Leads = gen.InboundLeads(m.n.Mesh)
	hosts := map[string]bool{first.Service.Host: true}
	for _, t := range m.facts.Targets {
		if t.Number == first.Number && t.Port.Number == first.Port.Number && !hosts[t.Service.Host] {
			hosts[t.Service.Host] = true
			names.Services = append(names.Services, t.Service)
		}
	}
	return k, names
}
