package inbound

import (
	"cmp"
	"slices"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/workload"
	"github.com/pilotd/pilotd/snapshot/value"
)

// port is the chains of one port: those that all ports of its kind share, and their names.
type port struct {
	chains *encodecache.Template
	names  gen.InboundNames
}

// Part returns the name of the chains.
func (p *port) Part() string { return p.names.Part() }

// Objects returns the one that declares the port, the policies for its clients, and the mesh's configuration.
func (p *port) Objects() []value.ObjectKey {
	var out []value.ObjectKey
	if p.names.Sidecar != (value.Meta{}) {
		out = append(out, p.names.Sidecar.Object(value.KindSidecar))
	}
	if p.names.Defined != (value.ObjectKey{}) {
		out = append(out, p.names.Defined)
	}
	if p.names.Policy != (value.ObjectKey{}) {
		out = append(out, p.names.Policy)
	}
	return append(append(out, p.names.Access.Objects()...), (*value.Mesh)(nil).Object())
}

// chains returns the filter chains of declared ports. A port whose chains are left out has none.
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

// portKey returns the Key of the chains for a port of the workload that no service declares, or with 0 for all such.
// Those of declared ports begin with it.
func (m *maker) portKey(number int) gen.InboundChainsKey {
	return gen.InboundChainsKey{
		Mode: m.facts.Peers.At(number), Policy: m.facts.Peers.From, Target: number, Access: m.access(),
		Mesh: m.n.Mesh.HTTP, Peers: m.n.Mesh.Peers, Filters: m.facts.Traits.Filters, HTTP10: m.facts.Traits.HTTP10,
		Protocol: value.Auto, StatPrefix: m.stats(&value.Service{}, &value.Port{Name: gen.VirtualInboundName}),
	}
}

// access says which requests and connections the workload takes.
func (m *maker) access() gen.AccessKey {
	k := gen.AccessKey{Policies: m.facts.Policies}
	if k.Policies.Empty() {
		return k
	}
	if p := k.Policies.Asked.Provider; p != nil && !m.sees(p.Host) {
		k.Policies.Asked = p.Unseen()
	}
	k.Settings = m.n.Mesh.Access
	if m.facts.Traits.Upstream() {
		k.RegexSize = m.tables.regexSize
	}
	return k
}

// undeclared returns the Keys for connections to ports that nobody declares: for all of them, and for those of which a
// policy says something else. own is the port of virtualInbound itself.
func (m *maker) undeclared(own int) []gen.InboundChainsKey {
	var out []gen.InboundChainsKey
	add := func(number int) {
		k := m.portKey(number)
		k.Undeclared, k.Policy = true, value.ObjectKey{} // workloads of all policies that say the same share them
		out = append(out, k)
	}
	add(0)
	out[0].Own = own
	m.facts.Peers.Each(func(number int, _ value.MTLSMode) {
		if !m.declares(number) {
			add(number)
		}
	})
	return out
}

// declares reports whether the Sidecar object that declares the workload's ports, or else one of its services, has a
// port.
func (m *maker) declares(number int) bool {
	if m.declaresPorts() {
		return slices.ContainsFunc(m.facts.Sidecar.Ingress, func(i *value.IngressListener) bool {
			return i.Port.Number == number
		})
	}
	return slices.ContainsFunc(m.facts.Targets, func(t workload.Target) bool { return t.Number == number })
}

// stats returns the name that the mesh gives the statistics of a workload's port; empty where it has no pattern for
// them.
func (m *maker) stats(svc *value.Service, port *value.Port) string {
	return gen.StatName{DomainSuffix: m.n.Mesh.DomainSuffix, Service: svc, Port: port}.Of(m.n.Mesh.InboundStat, "")
}

func byTarget(a, b gen.InboundChainsKey) int { return cmp.Compare(a.Target, b.Target) }
