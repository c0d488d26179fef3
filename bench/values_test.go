package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/gen/plan"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// valueMesh is the size of a mesh of values, made without ingest, so that 100,000 services are there at once.
//
// All services have HTTP port 80 at an address of their own, a tenth a TCP port too, a fifth a VirtualService, a fifth
// a DestinationRule with two subsets, a tenth stand for ServiceEntries. Ten are of istio-system, one of a namespace
// aside, which no Sidecar imports.
type valueMesh struct {
	services, namespaces int
	sidecars             int // Sidecar objects, each for one workload
}

const aside, systemNamespace = "aside", "istio-system"

func (m valueMesh) namespace(i int) string {
	switch {
	case i == 0:
		return aside
	case i <= 10:
		return systemNamespace
	}
	return fmt.Sprintf("ns-%d", i%m.namespaces)
}

func (m valueMesh) key(i int) value.ServiceKey {
	ns := m.namespace(i)
	if i%10 == 9 {
		return value.ServiceKey{Host: fmt.Sprintf("api-%d.example-%d.com", i, i%100), Namespace: ns}
	}
	return value.ServiceKey{Host: fmt.Sprintf("svc-%d.%s.svc.cluster.local", i, ns), Namespace: ns}
}

// service returns service i; n numbers its versions.
func (m valueMesh) service(i, n int) *value.Service {
	k := m.key(i)
	s := &value.Service{ServiceKey: k, Name: fmt.Sprintf("svc-%d", i), Created: int64(i),
		Export:    value.Visibility{Public: true},
		Object:    value.ObjectKey{Kind: value.KindService, Namespace: k.Namespace, Name: fmt.Sprintf("svc-%d", i)},
		Addresses: []string{fmt.Sprintf("10.%d.%d.%d", 100+i/65536, i/256%256, i%256)},
		Ports:     []*value.Port{{Name: "http", Number: 80, Protocol: value.HTTP, TargetPort: 8080}},
		Labels:    value.Labels{"version": fmt.Sprint(n)},
	}
	if i%10 == 9 {
		s.Registry, s.External, s.Resolution = value.RegistryExternal, true, value.DNSLB
		s.SubjectAltNames = []string{fmt.Sprintf("san-%d.example.com", n)}
	} else {
		s.Selector = value.Labels{"app": fmt.Sprintf("svc-%d", i)}
	}
	if i%10 == 3 {
		s.Ports = append(s.Ports, &value.Port{Name: "tcp", Number: 9000, Protocol: value.TCP, TargetPort: 9000})
	}
	return s
}

// route returns the VirtualService of service i, with the weights of version n.
func (m valueMesh) route(i, n int) *value.VirtualService {
	k := m.key(i)
	to := func(subset string, weight int) *networking.HTTPRouteDestination {
		return &networking.HTTPRouteDestination{Weight: int32(weight),
			Destination: &networking.Destination{Host: k.Host, Subset: subset}}
	}
	return &value.VirtualService{
		Meta:   value.Meta{Namespace: k.Namespace, Name: fmt.Sprintf("svc-%d", i), Created: int64(i)},
		Export: value.Visibility{Public: true},
		Routing: istio.Routing(&networking.VirtualService{Hosts: []string{k.Host}, Gateways: []string{"mesh"},
			Http: []*networking.HTTPRoute{{Route: []*networking.HTTPRouteDestination{to("v1", 1+n%98),
				to("v2", 99-n%98)}}}}),
	}
}

// rule returns the DestinationRule of service i, with the connection limit of version n.
func (m valueMesh) rule(i, n int) *value.DestinationRule {
	k := m.key(i)
	meta := value.Meta{Namespace: k.Namespace, Name: fmt.Sprintf("svc-%d", i), Created: int64(i)}
	return &value.DestinationRule{
		Meta: meta, Export: value.Visibility{Public: true},
		From: []value.ObjectKey{{Kind: value.KindDestinationRule, Namespace: meta.Namespace, Name: meta.Name}},
		DestinationPolicy: istio.Policy(&networking.DestinationRule{Host: k.Host,
			TrafficPolicy: &networking.TrafficPolicy{ConnectionPool: &networking.ConnectionPoolSettings{
				Tcp: &networking.ConnectionPoolSettings_TCPSettings{MaxConnections: int32(n%1000 + 1)}}},
			Subsets: []*networking.Subset{{Name: "v1", Labels: map[string]string{"version": "v1"}},
				{Name: "v2", Labels: map[string]string{"version": "v2"}}}}),
	}
}

// sidecar returns Sidecar object j: its namespace, istio-system, and three hosts of anywhere but aside. n numbers its
// versions.
func (m valueMesh) sidecar(j, n int) *value.Sidecar {
	hosts := []string{"./*", systemNamespace + "/*"}
	for h := range 3 {
		k := m.key(11 + (j*7+h*131+n)%(m.services-11))
		hosts = append(hosts, k.Namespace+"/"+k.Host)
	}
	return &value.Sidecar{Meta: value.Meta{Namespace: fmt.Sprintf("ns-%d", j%m.namespaces),
		Name: fmt.Sprintf("sidecar-%d", j), Created: int64(j)}, SidecarSettings: istio.Sidecar(&networking.Sidecar{
		WorkloadSelector: &networking.WorkloadSelector{Labels: map[string]string{"workload": fmt.Sprint(j)}},
		Egress:           []*networking.IstioEgressListener{{Hosts: hosts}},
	})}
}

// proxy returns a sidecar proxy of workload j, for which Sidecar object j is, if there is one.
func (m valueMesh) proxy(j int) *proxy.Proxy {
	ns := fmt.Sprintf("ns-%d", j%m.namespaces)
	p := &proxy.Proxy{ID: fmt.Sprintf("sidecar~10.0.0.1~w-%d.%s~", j, ns), Name: fmt.Sprintf("w-%d", j), Namespace: ns,
		ClusterID: "Kubernetes",
		Addresses: []string{fmt.Sprintf("10.%d.%d.%d", j/65536, j/256%256, j%256)},
		Labels:    proxy.PackLabels(value.Labels{"workload": fmt.Sprint(j)})}
	p.Traits.IPv4, p.Traits.Filters = true, value.AllFilters
	return p
}

func (m valueMesh) mesh() *value.Mesh {
	return istio.Mesh(
		&meshconfig.MeshConfig{RootNamespace: systemNamespace, TrustDomain: "cluster.local",
			ProxyListenPort: 15001, ProxyInboundListenPort: 15006,
			OutboundTrafficPolicy: &meshconfig.MeshConfig_OutboundTrafficPolicy{
				Mode: meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY}},
		"cluster.local", "Kubernetes")
}

func objectKey(kind value.Kind, m value.Meta) value.ObjectKey {
	return value.ObjectKey{Kind: kind, Namespace: m.Namespace, Name: m.Name}
}

// all returns the whole mesh.
func (m valueMesh) all() *snapshottest.Batch {
	b := &snapshottest.Batch{Mesh: m.mesh(), Services: map[value.ServiceKey]*value.Service{},
		VirtualServices:  map[value.ObjectKey]*value.VirtualService{},
		DestinationRules: map[value.ObjectKey]*value.DestinationRule{}, Sidecars: map[value.ObjectKey]*value.Sidecar{},
		Projections: map[value.ServiceKey]*value.Projection{}}
	for i := range m.services {
		s := m.service(i, 0)
		b.Services[s.ServiceKey], b.Projections[s.ServiceKey] = s, &value.Projection{Any: true}
		if i%5 == 0 {
			b.VirtualServices[objectKey(value.KindVirtualService, m.route(i, 0).Meta)] = m.route(i, 0)
			b.DestinationRules[objectKey(value.KindDestinationRule, m.rule(i, 0).Meta)] = m.rule(i, 0)
		}
	}
	for j := range m.sidecars {
		s := m.sidecar(j, 0)
		b.Sidecars[objectKey(value.KindSidecar, s.Meta)] = s
	}
	return b
}

// edit is a change of one object; n numbers its versions.
type edit struct {
	kind string
	make func(m valueMesh, n int) *snapshottest.Batch
}

// edits are one for each kind; that of a route is of service i.
func routeEdit(kind string, i int) edit {
	return edit{kind, func(m valueMesh, n int) *snapshottest.Batch {
		vs := m.route(i, n+1)
		return &snapshottest.Batch{VirtualServices: map[value.ObjectKey]*value.VirtualService{
			objectKey(value.KindVirtualService, vs.Meta): vs}}
	}}
}

func edits() []edit {
	return []edit{
		routeEdit("virtualservice", 50),
		{"destinationrule", func(m valueMesh, n int) *snapshottest.Batch {
			dr := m.rule(50, n+1)
			return &snapshottest.Batch{DestinationRules: map[value.ObjectKey]*value.DestinationRule{
				objectKey(value.KindDestinationRule, dr.Meta): dr}}
		}},
		{"service", func(m valueMesh, n int) *snapshottest.Batch {
			s := m.service(m.services+1, n)
			b := &snapshottest.Batch{Services: map[value.ServiceKey]*value.Service{s.ServiceKey: s}}
			if n%2 == 1 {
				b.Services[s.ServiceKey] = nil
			}
			return b
		}},
		{"serviceentry", func(m valueMesh, n int) *snapshottest.Batch {
			s := m.service(59, n+1)
			return &snapshottest.Batch{Services: map[value.ServiceKey]*value.Service{s.ServiceKey: s}}
		}},
		{"sidecar", func(m valueMesh, n int) *snapshottest.Batch {
			s := m.sidecar(0, n+1)
			return &snapshottest.Batch{Sidecars: map[value.ObjectKey]*value.Sidecar{objectKey(value.KindSidecar,
				s.Meta): s}}
		}},
		{"namespace", func(m valueMesh, n int) *snapshottest.Batch {
			return &snapshottest.Batch{Namespaces: map[string]*value.Namespace{"ns-0": {Name: "ns-0",
				Labels: value.Labels{"version": fmt.Sprint(n)}}}}
		}},
	}
}

// valuePlanner is a planner of a valueMesh. It implements classes.Sink.
type valuePlanner struct {
	mesh    valueMesh
	builder *snapshot.Builder
	planner *plan.Planner
	stop    func()
	sets    map[*classes.Class]*classes.ResourceSet // owned by the planner's goroutine between barriers
	moved   int
	n       int
}

func planValues(m valueMesh) *valuePlanner {
	p := &valuePlanner{mesh: m, sets: map[*classes.Class]*classes.ResourceSet{}}
	p.planner = plan.NewPlanner(plan.NewTables(), p, plan.Options{Now: time.Now, After: time.After})
	p.builder = snapshot.NewBuilder(p.planner)
	snapshottest.Apply(p.builder, m.all())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { p.planner.Run(ctx); close(done) }()
	p.stop = func() { cancel(); <-done }
	return p
}

// attach connects the proxies of the first n workloads.
func (p *valuePlanner) attach(b testing.TB, n int) {
	for j := range n {
		p.planner.Attach(uint64(j+1), p.mesh.proxy(j))
	}
	p.settle(b)
}

func (p *valuePlanner) settle(b testing.TB) { must(b, p.planner.Barrier(b.Context())) }

// apply makes the next version of an edit and waits until all is planned.
func (p *valuePlanner) apply(b testing.TB, e edit) {
	snapshottest.Apply(p.builder, e.make(p.mesh, p.n))
	p.n++
	p.settle(b)
}

// Assigned implements classes.Sink.
func (p *valuePlanner) Assigned(_ uint64, c *classes.Class, w *classes.ResourceSet) { p.sets[c] = w }

// Advanced implements classes.Sink.
func (p *valuePlanner) Advanced(sets map[*classes.Class]*classes.ResourceSet, _ classes.Endpoints) {
	p.moved += len(sets)
	for c, w := range sets {
		p.sets[c] = w
	}
}

// EndpointsChanged implements classes.Sink.
func (p *valuePlanner) EndpointsChanged(*snapshot.EndpointTable, []value.ServiceKey) {}
