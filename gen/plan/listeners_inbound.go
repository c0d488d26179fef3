package plan

import (
	"cmp"
	"slices"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// inboundPort is the chains of one port: those that all ports of its kind share, and their names.
type inboundPort struct {
	chains *encodecache.Stencil
	names  gen.InboundNames
}

// Part is the name of the chains.
func (p *inboundPort) Part() string { return p.names.Part() }

// Objects are the one that declares the port, and the mesh's configuration.
func (p *inboundPort) Objects() []value.ObjectKey {
	var out []value.ObjectKey
	if p.names.Sidecar != (value.Meta{}) {
		out = append(out, p.names.Sidecar.Object(value.KindSidecar))
	}
	if p.names.Defined != (value.ObjectKey{}) {
		out = append(out, p.names.Defined)
	}
	return append(out, (*value.Mesh)(nil).Object())
}

// inboundContent is an inbound listener: its header, the chains that are the same for all workloads (nil where it has
// none of those), and those of the workload's own ports. It is one workload's, so that it holds no bytes but their
// names: they are put together when it is sent.
type inboundContent struct {
	header, fixed *encodecache.Fragment
	ports         []inboundPort
}

// entry is the listener as a resource.
func (c *inboundContent) entry(name string) *encodecache.Entry {
	// it is left out, or has no chain
	if len(c.header.Bytes()) == 0 || len(c.ports) == 0 && (c.fixed == nil || len(c.fixed.Bytes()) == 0) {
		return encodecache.NewAbsent(xdstype.ListenerURL, name)
	}
	size := 0
	version := encodecache.Join(func(yield func(encodecache.Sum) bool) {
		for _, f := range []*encodecache.Fragment{c.header, c.fixed} {
			if f != nil {
				size += len(f.Bytes())
				_ = yield(f.Sum())
			}
		}
		for i := range c.ports {
			texts := c.ports[i].names.Texts()
			size += c.ports[i].chains.Len(texts)
			_ = yield(c.ports[i].chains.Sum(texts))
		}
	})
	return encodecache.NewEntry(xdstype.ListenerURL, name, version, size, c.fragments)
}

// fragments yields what the listener is made of.
func (c *inboundContent) fragments(yield func(*encodecache.Fragment) bool) {
	if !yield(c.header) || c.fixed != nil && !yield(c.fixed) {
		return
	}
	for i := range c.ports {
		if !yield(c.ports[i].chains.Fill(c.ports[i].names.Texts(), &c.ports[i])) {
			return
		}
	}
}

// inboundHoles are where encoded chains have their names, in the fields of a listener.
func inboundHoles() []encodecache.Hole {
	const anyURL = "type.googleapis.com/envoy.extensions.filters.network."
	fields := func(numbers ...int) (path []encodecache.Step) {
		for _, n := range numbers {
			path = append(path, encodecache.Step{Field: n})
		}
		return path
	}
	filter := func(typ string, numbers ...int) []encodecache.Step {
		return slices.Concat(fields(3, 3, 4), []encodecache.Step{{Field: 2, Any: anyURL + typ}}, fields(numbers...))
	}
	const hcm, tcp, mongo = "http_connection_manager.v3.HttpConnectionManager", "tcp_proxy.v3.TcpProxy",
		"mongo_proxy.v3.MongoProxy"
	return []encodecache.Hole{
		{Path: fields(3, 7), Text: gen.ChainName},
		{Path: fields(3, 1, 8), Text: gen.ChainPort}, // of the match
		{Path: filter(hcm, 2), Text: gen.ChainHTTPStat},
		{Path: filter(hcm, 4, 1), Text: gen.ChainCluster},            // names the route configuration
		{Path: filter(hcm, 4, 2, 1), Text: gen.ChainVirtualHost},     // its virtual host,
		{Path: filter(hcm, 4, 2, 3, 5, 1), Text: gen.ChainOperation}, // whose route has a decorator
		{Path: filter(hcm, 4, 2, 3, 2, 1), Text: gen.ChainCluster},   // and an action
		{Path: filter(tcp, 1), Text: gen.ChainTCPStat},
		{Path: filter(tcp, 2), Text: gen.ChainCluster},
		{Path: filter(mongo, 1), Text: gen.ChainTCPStat},
	}
}

// inboundListeners are virtualInbound, or with interception mode NONE the listeners at the workload's real ports. omit
// are the names of outbound listeners that this proxy must not have: those at its own headless address.
func (t *Tables) inboundListeners(n *snapshot.Snapshot, sc *Scope, own *Own) (add []*encodecache.Entry, omit []string) {
	if sc.Traits.Type == value.Proxyless {
		return t.serverListeners(own), nil
	}
	var captured, bound []gen.InboundChainsKey
	intercepted := sc.Traits.Interception != value.NoInterception
	switch {
	case declaresPorts(sc):
		captured, bound = t.ingressPorts(n, sc, own)
	case intercepted: // otherwise the application itself has the ports
		captured = t.targetPorts(n, sc, own)
	}
	if intercepted {
		add = append(add, t.virtualInbound(n, sc, captured))
	}
	for _, k := range bound {
		add = append(add, t.boundListener(k))
	}
	return add, ownMemberListeners(own)
}

// ownMemberListeners are the names of the outbound listeners at the proxy's own address: an application that calls
// itself there is not intercepted.
func ownMemberListeners(own *Own) (names []string) {
	if len(own.Addresses) == 0 {
		return nil
	}
	for _, target := range own.Targets {
		if byMember(target.Service) && !target.Port.Protocol.IsHTTP() {
			names = append(names, gen.ListenerName(own.Addresses[0], target.Port.Number))
		}
	}
	return names
}

// virtualInbound is the listener that gets all inbound connections of a workload with these declared ports.
func (t *Tables) virtualInbound(n *snapshot.Snapshot, sc *Scope, declared []gen.InboundChainsKey) *encodecache.Entry {
	port := int(n.Mesh.Config.GetProxyInboundListenPort())
	bind := outboundView{t, n, sc}.everywhere().bind
	rest := t.inboundPort(n, sc)
	header := gen.InboundListenerKey{
		Mesh: n.Mesh, Name: gen.VirtualInboundName, Bind: bind, Port: port, Captured: true,
		Transparent: sc.Traits.Interception == value.TProxy,
	}
	header.TLS, header.HTTP = gen.Inspections(append([]gen.InboundChainsKey{rest}, declared...), port)
	c := &inboundContent{t.listeners.headers.Get(header), t.listeners.inFixed.Get(rest), t.inboundPorts(declared)}
	return c.entry(header.Name)
}

// tcpFilters are those of the proxy's own filters that a chain without HTTP may have.
func tcpFilters(sc *Scope) value.Filters { return sc.Traits.Filters & gen.TCPExtensions() }

// inboundPort is the Key of the chains for ports that no service declares, and the common part of those of declared
// ones.
func (t *Tables) inboundPort(n *snapshot.Snapshot, sc *Scope) gen.InboundChainsKey {
	return gen.InboundChainsKey{
		Mesh: n.Mesh, Filters: sc.Traits.Filters, HTTP10: sc.Traits.HTTP10, Protocol: value.Auto,
		StatPrefix: inboundStats(n, &value.Service{}, &value.Port{Name: gen.VirtualInboundName}),
	}
}

// inboundStats is the name that the mesh gives the statistics of a workload's port; empty where it has no pattern for
// them.
func inboundStats(n *snapshot.Snapshot, svc *value.Service, port *value.Port) string {
	return gen.StatName{Mesh: n.Mesh, Service: svc, Port: port}.Of(n.Mesh.Config.GetInboundClusterStatName(), "")
}

// targetPorts are the Keys of the workload's declared ports, in order. Of several services with one port the oldest
// decides.
func (t *Tables) targetPorts(n *snapshot.Snapshot, sc *Scope, own *Own) (out []gen.InboundChainsKey) {
	bind := outboundView{t, n, sc}.everywhere().bind
	for _, target := range own.Targets {
		k := t.inboundPort(n, sc)
		k.Bind, k.Target, k.Protocol, k.Host, k.Port = bind, target.Number, target.Port.Protocol, target.Service.Host,
			target.Port.Number
		k.StatPrefix, k.Defined = inboundStats(n, target.Service, target.Port), target.Service.Object
		if !slices.ContainsFunc(out, func(o gen.InboundChainsKey) bool { return o.Target == k.Target }) &&
			!ownPort(n, k.Target) {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, byTarget)
	return out
}

func byTarget(a, b gen.InboundChainsKey) int { return cmp.Compare(a.Target, b.Target) }

// inboundPorts are the chains of declared ports.
func (t *Tables) inboundPorts(declared []gen.InboundChainsKey) []inboundPort {
	out := make([]inboundPort, 0, len(declared))
	for _, k := range declared {
		shared, names := k.Split()
		if chains := t.listeners.inPorts.Get(shared); !chains.Empty() {
			out = append(out, inboundPort{chains, names})
		}
	}
	return out
}
