package outbound

import (
	"iter"
	"strconv"
	"strings"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/gen/plan/section"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// routeTables hold the sidecar route configurations and their virtual hosts.
type routeTables struct {
	Hosts        checked.Table[gen.VirtualHostKey, encodecache.Fragment]
	Headers      checked.Table[gen.RouteConfigurationKey, encodecache.Fragment]
	catchAlls    checked.Table[gen.CatchAllKey, encodecache.Fragment]
	Destinations *encodecache.Table[gen.DestinationLink, gen.DestinationLink]
	sniffed      *encodecache.Table[soleHostKey, encodecache.Entry]
	runs         section.Runs
}

// soleHostKey is a route configuration with one virtual host, or none.
type soleHostKey struct {
	header, host *encodecache.Fragment
	name         string
}

// Part returns the name of the route configuration.
func (k soleHostKey) Part() string { return k.name }

// Objects returns those of the virtual host.
func (k soleHostKey) Objects() []value.ObjectKey {
	if k.host == nil {
		return nil
	}
	return checked.ObjectsOf(k.host)
}

func newRouteTables(f *checked.Faults) routeTables {
	return routeTables{
		Hosts:        checked.Fragments(f, "virtual host", gen.EncodeVirtualHost),
		Headers:      checked.Fragments(f, "route configuration", gen.EncodeRouteConfiguration),
		catchAlls:    checked.Fragments(f, "virtual host", gen.EncodeCatchAll),
		runs:         section.NewRuns(),
		Destinations: encodecache.NewTable(func(k gen.DestinationLink) *gen.DestinationLink { return &k }),
		sniffed: encodecache.NewTable(func(k soleHostKey) *encodecache.Entry {
			return encodecache.NewComposite(
				xdstype.RouteURL,
				k.name,
				k.header,
				func(yield func(*encodecache.Fragment) bool) {
					if k.host != nil {
						yield(k.host)
					}
				},
			)
		}),
	}
}

// VirtualHosts are the encoded virtual hosts of one route configuration, in the order in which they are sent: by host.
type VirtualHosts = chunked.Map[*encodecache.Fragment]

// VirtualHostOf returns the virtual host of one host (a service's, or one that only a VirtualService names, patterns
// included) in the route configuration of a shared HTTP port, where it is ordered by the host; nil if it has none
// there.
func (t *Tables) VirtualHostOf(v scope.PortView, host string) *encodecache.Fragment {
	c, ok := v.Owner(host)
	if !ok {
		return nil
	}
	domains := v.DomainList(c)
	if domains == "" {
		return nil
	}
	return t.Routes.Hosts.Get(t.virtualHostKey(v, c, domains))
}

// virtualHostKey returns the Key of the virtual host that c describes.
func (t *Tables) virtualHostKey(v scope.PortView, c scope.Owner, domains string) gen.VirtualHostKey {
	k := gen.VirtualHostKey{Host: c.Host, Port: v.Port, Domains: domains, Mesh: v.Snapshot.Mesh.Routes,
		Proxyless: v.Scope.Traits.Type == value.Proxyless}
	if c.Service != nil {
		k.Defined = c.Service.Object
	}
	if c.VirtualService == nil {
		if r := v.DestinationRuleOf(c.Service); gen.Hashes(r) {
			k.Rule = r
		}
		return k
	}
	k.RegexSize = t.RegexLimit(v.Scope.Traits, c.VirtualService.RegexSize)
	k.Routes = gen.RoutesKey{Service: c.VirtualService, Port: v.Port, Refused: c.Refused,
		Destinations: t.destinationsOf(v, c.VirtualService), Proxyless: k.Proxyless}
	return k
}

// RegexLimit returns the RegexSize of the virtual host of a proxy, where size is that of the largest program in it.
func (t *Tables) RegexLimit(traits value.Traits, size int) int {
	if !traits.Upstream() || size <= t.RegexSize {
		return 0
	}
	return t.RegexSize
}

// destinationsOf returns what there is to know of the hosts that a VirtualService routes to.
func (t *Tables) destinationsOf(v scope.PortView, vs *value.VirtualService) *gen.DestinationLink {
	var list *gen.DestinationLink
	for host := range Distinct(snapshot.Destinations(vs)) {
		d := gen.Destination{Host: host}
		if svc := v.Service(host); svc != nil {
			d.Target = svc.ExternalName
		}
		if svc := v.Meant(host); svc != nil {
			if r := v.DestinationRuleOf(svc); gen.Hashes(r) {
				d.Rule = r
			}
		}
		if d != (gen.Destination{Host: host}) {
			list = t.Routes.Destinations.Get(gen.DestinationLink{Destination: d, Next: list})
		}
	}
	return list
}

// Distinct yields each string of in once.
func Distinct(in iter.Seq[string]) iter.Seq[string] {
	return func(yield func(string) bool) {
		seen := make(map[string]struct{}, 4)
		for s := range in {
			if _, ok := seen[s]; ok {
				continue
			}
			seen[s] = struct{}{}
			if !yield(s) {
				return
			}
		}
	}
}

// RouteConfiguration returns the one of a shared HTTP port: the header, the catch-all virtual host of the outbound
// traffic policy, and hosts.
func (t *Tables) RouteConfiguration(n *snapshot.Snapshot, sc *scope.Scope, port int,
	hosts VirtualHosts) *encodecache.Entry {
	name := strconv.Itoa(port)
	return new(Composition).Compose(&t.Routes, name, t.RouteEnds(n, sc, name), hosts)
}

// RouteEnds returns the header and the last virtual host of the route configuration of a shared HTTP port.
func (t *Tables) RouteEnds(n *snapshot.Snapshot, sc *scope.Scope, name string) [2]*encodecache.Fragment {
	return [2]*encodecache.Fragment{
		t.Routes.Headers.Get(gen.RouteConfigurationKey{Name: name, Proxyless: sc.Traits.Type == value.Proxyless}),
		t.Routes.catchAlls.Get(gen.CatchAllKey{CountAttempts: n.Mesh.Routes.CountAttempts, Cluster: egressCluster(n, sc)}),
	}
}

// Composition is a route configuration that is made of a header, virtual hosts and a last one, with its Entry: there is
// one for each port of each scope, and each edit makes it anew. Its zero value is none; Compose fills it.
type Composition struct {
	// Immutable after Compose.
	entry        encodecache.Entry
	tables       *routeTables
	header, last *encodecache.Fragment
	hosts        VirtualHosts
}

// Compose makes c the route configuration of a header, virtual hosts and a last one, and returns its Entry. Its version
// is a sum, so that it costs what an edit changes: each virtual host has its name in its bytes, and so its place.
func (c *Composition) Compose(t *routeTables, name string, ends [2]*encodecache.Fragment,
	hosts VirtualHosts) *encodecache.Entry {
	c.tables, c.header, c.last, c.hosts = t, ends[0], ends[1], hosts
	if len(c.header.Bytes()) == 0 {
		return encodecache.NewAbsent(xdstype.RouteURL, name)
	}
	m := hosts.Measure(MeasureFragment).Plus(MeasureFragment("", c.header)).Plus(MeasureFragment("", c.last))
	c.entry = encodecache.Composed(xdstype.RouteURL, name,
		encodecache.Content{Version: encodecache.Sum(m.Sum), Size: m.Weight}, c)
	return &c.entry
}

// Hosts returns the virtual hosts but for the last one.
func (c *Composition) Hosts() VirtualHosts { return c.hosts }

// Ends returns what the route configuration has before and after its virtual hosts.
func (c *Composition) Ends() [2]*encodecache.Fragment {
	return [2]*encodecache.Fragment{c.header, c.last}
}

// Runs implements encodecache.Body: virtual hosts come by chunks, which other scopes have too.
func (c *Composition) Runs(yield func(*encodecache.Run) bool) {
	if !yield(encodecache.NewRun(single(c.header))) {
		return
	}
	for chunk := range c.hosts.Chunks() {
		if !yield(c.tables.runs.Get(section.RunKey{Chunk: chunk})) {
			return
		}
	}
	yield(encodecache.NewRun(single(c.last)))
}

// Fragments implements encodecache.Body.
func (c *Composition) Fragments(yield func(*encodecache.Fragment) bool) {
	if !yield(c.header) {
		return
	}
	for _, f := range c.hosts.All() {
		if !yield(f) {
			return
		}
	}
	yield(c.last)
}

func single(f *encodecache.Fragment) iter.Seq[*encodecache.Fragment] {
	return func(yield func(*encodecache.Fragment) bool) { yield(f) }
}

// MeasureFragment returns what a virtual host adds to the measure of those of a route configuration.
func MeasureFragment(_ string, f *encodecache.Fragment) chunked.Measure {
	return chunked.Measure{Sum: chunked.Sum(f.Sum()), Weight: len(f.Bytes())}
}

// Compose returns a route configuration of a header, virtual hosts, and a last one, which may be nil.
func Compose(name string, header *encodecache.Fragment, hosts VirtualHosts,
	last *encodecache.Fragment) *encodecache.Entry {
	return ComposeOf(xdstype.RouteURL, name, [2]*encodecache.Fragment{header, last}, hosts)
}

// ComposeOf returns a resource of many parts between a first one and a last one, which may be nil.
func ComposeOf(typeURL, name string, ends [2]*encodecache.Fragment,
	hosts chunked.Map[*encodecache.Fragment]) *encodecache.Entry {
	header, last := ends[0], ends[1]
	if len(header.Bytes()) == 0 {
		return encodecache.NewAbsent(typeURL, name)
	}
	if last == nil {
		last = encodecache.NewFragment(nil)
	}
	version := encodecache.Join(func(yield func(encodecache.Sum) bool) {
		_ = yield(header.Sum()) && yield(encodecache.Sum(hosts.Digest(fragmentSum, joinSums))) && yield(last.Sum())
	})
	size := len(header.Bytes()) + len(last.Bytes()) +
		hosts.Weigh(func(_ string, f *encodecache.Fragment) int { return len(f.Bytes()) })
	return encodecache.NewEntry(typeURL, name,
		encodecache.Content{Version: version, Size: size, Parts: func(yield func(*encodecache.Fragment) bool) {
			if !yield(header) {
				return
			}
			for _, f := range hosts.All() {
				if !yield(f) {
					return
				}
			}
			yield(last)
		}})
}

func fragmentSum(_ string, f *encodecache.Fragment) chunked.Sum { return chunked.Sum(f.Sum()) }

func joinSums(sums []chunked.Sum) chunked.Sum {
	return chunked.Sum(encodecache.Join(func(yield func(encodecache.Sum) bool) {
		for _, s := range sums {
			if !yield(encodecache.Sum(s)) {
				return
			}
		}
	}))
}

// egressCluster returns where requests to unknown hosts go; empty if nowhere.
func egressCluster(n *snapshot.Snapshot, sc *scope.Scope) string {
	if sc.Sidecar != nil && sc.Sidecar.Outbound != nil {
		switch p := sc.Sidecar.Outbound; {
		case p.Mode == value.RegistryOnly:
			return ""
		case p.Proxy != nil:
			return gen.ClusterName(p.Proxy.Port, p.Proxy.Subset, p.Proxy.Host)
		}
		return gen.PassthroughOut
	}
	switch {
	case n.Mesh.Outbound.Mode == value.RegistryOnly:
		return ""
	case DynamicDNS(n, sc).Served:
		return gen.DynamicDNSOut
	}
	return gen.PassthroughOut
}

// SniffedRoutes returns the route configurations of the ports of a service that have one of their own: "host:port" of
// those whose protocol is sniffed at the service's own address or, where nothing is intercepted, at the loopback
// address; "outbound|port||host" of all for gRPC clients. They depend on the same things as its virtual hosts.
func (t *Tables) SniffedRoutes(n *snapshot.Snapshot, sc *scope.Scope, host string) []*encodecache.Entry {
	svc := sc.Service(n, host)
	if svc == nil || sc.Traits.Type == value.Router {
		return nil
	}
	var out []*encodecache.Entry
	for _, p := range svc.Ports {
		v := sc.OnPort(n, p.Number, nil)
		if sc.Traits.Type == value.Proxyless && p.Protocol != value.UDP {
			out = append(out, t.soleHost(v, host, gen.ClusterName(p.Number, "", host)))
		} else if p.Protocol == value.Auto && (svc.OwnsAddress() || sc.Traits.Interception == value.NoInterception) {
			out = append(out, t.soleHost(v, host, gen.HostPort(host, p.Number)))
		}
	}
	return out
}

// soleHost returns the route configuration with the virtual host of one host only.
func (t *Tables) soleHost(v scope.PortView, host, name string) *encodecache.Entry {
	proxyless := v.Scope.Traits.Type == value.Proxyless
	k := soleHostKey{header: t.Routes.Headers.Get(gen.RouteConfigurationKey{Name: name, Proxyless: proxyless}),
		name: name}
	if c, ok := v.Owner(host); ok {
		domains := "*"
		if proxyless { // which look for the name that was dialled, with its port; nobody else is there to have it
			domains = strings.Join(v.Dialled(c), " ")
		}
		k.host = t.Routes.Hosts.Get(t.virtualHostKey(v, c, domains))
	}
	return t.Routes.sniffed.Get(k)
}
