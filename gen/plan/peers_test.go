package plan

import (
	"context"
	"fmt"
	"testing"
	"unique"

	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// policed is a mesh of one namespace: services app-0 to app-n with a pod each, whose proxies are attached.
type policed struct {
	t       *testing.T
	sink    *recorder
	planner *Planner
	builder *snapshot.Builder
}

func newPoliced(t *testing.T, n int) *policed {
	m := &policed{t: t, sink: newRecorder()}
	planner, stop := start(m.sink)
	t.Cleanup(stop)
	m.planner, m.builder = planner, snapshot.NewBuilder(planner)
	b := &snapshottest.Batch{Mesh: testMesh(0), Services: map[value.ServiceKey]*value.Service{},
		Endpoints: map[value.ServiceKey][]*value.Endpoint{}, Workloads: map[string]*value.Workload{}}
	for i := range n {
		app, at := fmt.Sprint("app-", i), fmt.Sprintf("10.0.%d.%d", i/200, i%200+1)
		k := value.ServiceKey{Host: app + ".shop.svc.cluster.local", Namespace: "shop"}
		labels := value.Labels{"app": app}
		b.Services[k] = &value.Service{ServiceKey: k, Name: app, Selector: labels, Export: value.Visibility{Public: true},
			Addresses: []string{fmt.Sprintf("10.96.%d.%d", i/200, i%200+1)},
			Ports:     []*value.Port{{Name: "http", Number: 80, TargetPort: 8080, Protocol: value.HTTP}}}
		b.Endpoints[k] = []*value.Endpoint{endpointOf(at, labels)}
		b.Workloads[at] = &value.Workload{Namespace: "shop", Name: app, Addresses: []string{at}, Labels: labels, Pod: true}
		p := &proxy.Proxy{ID: app, Namespace: "shop", Addresses: []string{at}, ClusterID: "Kubernetes"}
		p.Traits.IPv4 = true
		planner.Attach(uint64(i), p)
	}
	snapshottest.Apply(m.builder, b)
	m.settle()
	return m
}

func endpointOf(at string, labels value.Labels) *value.Endpoint {
	e := &value.Endpoint{Addresses: []string{at}, Weight: 1, Labels: labels,
		Ports: []value.EndpointPort{{Name: "http", Port: 8080}}}
	e.Identity = unique.Make(value.Identity{Namespace: "shop", TLSMode: "istio", LabelsKey: value.LabelsKey(labels)})
	return e
}

func (m *policed) settle() {
	m.t.Helper()
	if err := m.planner.Barrier(context.Background()); err != nil {
		m.t.Fatal(err)
	}
}

func (m *policed) apply(policies ...*value.PeerAuthentication) {
	b := &snapshottest.Batch{Objects: map[value.ObjectKey]value.Value{}}
	for _, p := range policies {
		b.Objects[p.Object()] = p
	}
	snapshottest.Apply(m.builder, b)
	m.settle()
}

// policyOf returns the policy of one app; of all for a negative one.
func policyOf(i int, mode value.MTLSMode) *value.PeerAuthentication {
	p := &value.PeerAuthentication{Meta: value.Meta{Namespace: "shop", Name: fmt.Sprint("p", i)}, Mode: &mode}
	if i >= 0 {
		p.Labels = value.Labels{"app": fmt.Sprint("app-", i)}
	}
	return p
}

// sets returns the ResourceSets of the proxies, by number.
func (m *policed) sets() map[uint64]*classes.ResourceSet {
	out := map[uint64]*classes.ResourceSet{}
	for id, c := range m.sink.classes {
		out[id] = m.sink.sets[c]
	}
	return out
}

// TestPoliciesOfWorkloadsSplitNothingOutbound is invariant I15: with a policy for each of 1,000 workloads all have the
// same outbound configuration as one.
func TestPoliciesOfWorkloadsSplitNothingOutbound(t *testing.T) {
	const n = 1000
	m := newPoliced(t, n)
	before := m.planner.Counts()
	var all []*value.PeerAuthentication
	for i := range n {
		all = append(all, policyOf(i, []value.MTLSMode{value.Strict, value.Disabled}[i%2]))
	}
	m.apply(all...)
	after := m.planner.Counts()
	if before.Bases != 1 || after.Bases != before.Bases || after.Classes != n {
		t.Errorf("%d bases and %d classes became %d and %d", before.Bases, before.Classes, after.Bases, after.Classes)
	}
}

// TestPolicyMovesItsWorkloadAlone: an edit of a policy with a selector gives another class to whom it selects, and to
// nobody else; others get no more than the endpoint.
func TestPolicyMovesItsWorkloadAlone(t *testing.T) {
	m := newPoliced(t, 20)
	before, of := m.sets(), map[uint64]*classes.Class{}
	for id, c := range m.sink.classes {
		of[id] = c
	}
	m.apply(policyOf(3, value.Strict))
	for id, set := range m.sets() {
		if moved := m.sink.classes[id] != of[id]; moved != (id == 3) || (set != before[id]) != (id == 3) {
			t.Errorf("STRICT for 3: %d has another class: %v, and other resources: %v", id, moved, set != before[id])
		}
	}
	m.apply(policyOf(4, value.Disabled))
	assignment := func(i int) string {
		a, _ := m.sets()[7].Assignments.Get(fmt.Sprintf("outbound|80||app-%d.shop.svc.cluster.local", i))
		l := &endpointpb.ClusterLoadAssignment{}
		if err := proto.Unmarshal(a.Entry(m.builder.View().Endpoints).Message(), l); err != nil {
			t.Fatal(err)
		}
		return l.GetEndpoints()[0].GetLbEndpoints()[0].GetMetadata().
			GetFilterMetadata()["envoy.transport_socket_match"].GetFields()["tlsMode"].GetStringValue()
	}
	for i, want := range map[int]string{3: "istio", 4: "", 5: "istio"} {
		if got := assignment(i); got != want {
			t.Errorf("the endpoint of app-%d is marked %q, want %q", i, got, want)
		}
	}
	m.apply(policyOf(-1, value.Disabled), policyOf(4, value.Strict))
	for i, want := range map[int]string{3: "istio", 4: "istio", 5: ""} {
		if got := assignment(i); got != want {
			t.Errorf("with a namespace of plain text, the endpoint of app-%d is marked %q, want %q", i, got, want)
		}
	}
}
