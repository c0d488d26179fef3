package inbound

import (
	"cmp"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot/value"
)

// port is the chains of one port: those that all ports of its kind share, and their names.
type port struct {
	chains *encodecache.Stencil
	names  gen.InboundNames
}

// Part is the name of the chains.
func (p *port) Part() string { return p.names.Part() }

// Objects are the one that declares the port, and the mesh's configuration.
func (p *port) Objects() []value.ObjectKey {
	var out []value.ObjectKey
	if p.names.Sidecar != (value.Meta{}) {
		out = append(out, p.names.Sidecar.Object(value.KindSidecar))
	}
	if p.names.Defined != (value.ObjectKey{}) {
		out = append(out, p.names.Defined)
	}
	return append(out, (*value.Mesh)(nil).Object())
}

// chains are the filter chains of declared ports. A port whose chains are left out has none.
func (t *Tables) chains(declared []gen.InboundChainsKey) []port {
	out := make([]port, 0, len(declared))
	for _, k := range declared {
		shared, names := k.Split()
		if chains := t.ports.Get(shared); !chains.Empty() {
			out = append(out, port{chains, names})
		}
	}
	return out
}

// portKey is the Key of the chains for ports that no service declares. Those of declared ports begin with it.
func (m *maker) portKey() gen.InboundChainsKey {
	return gen.InboundChainsKey{
		Mesh: m.n.Mesh.HTTP, Peers: m.n.Mesh.Peers, Filters: m.facts.Traits.Filters, HTTP10: m.facts.Traits.HTTP10, Protocol: value.Auto,
		StatPrefix: m.stats(&value.Service{}, &value.Port{Name: gen.VirtualInboundName}),
	}
}

// stats is the name that the mesh gives the statistics of a workload's port; empty where it has no pattern for them.
func (m *maker) stats(svc *value.Service, port *value.Port) string {
	return gen.StatName{Mesh: m.n.Mesh, Service: svc, Port: port}.Of(m.n.Mesh.InboundStat, "")
}

func byTarget(a, b gen.InboundChainsKey) int { return cmp.Compare(a.Target, b.Target) }
