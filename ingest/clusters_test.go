package ingest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	clientnet "istio.io/client-go/pkg/apis/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// inCluster says of events that their objects are in a cluster.
func inCluster(cluster string, events []Event) []Event {
	for i := range events {
		events[i].Key.Cluster = cluster
	}
	return events
}

const service = `
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 10.96.0.1, ports: [{name: http, port: 80}]}
---
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 80}]
endpoints: [{addresses: [ADDRESS], targetRef: {kind: Pod, name: web-a, namespace: shop}}]
---
kind: Pod
metadata: {name: web-a, namespace: shop, labels: {app: web}}
spec: {nodeName: node}
status: {phase: Running, podIP: ADDRESS, podIPs: [{ip: ADDRESS}]}
---
kind: Node
metadata: {name: node, labels: {topology.kubernetes.io/region: REGION}}`

// TestClustersHoldTheSameObjects: two clusters have the same Service, slices, pods and nodes by name. Each slice is
// joined with the pod of its own cluster, the host has the endpoints of both, and what one cluster loses the other
// keeps.
func TestClustersHoldTheSameObjects(t *testing.T) {
	k := newKeeper()
	s := NewStore(k, quiet(t), "kube", "kube east")
	s.Synced("kube")
	s.Synced("kube east")
	at := func(address, region string) string {
		return strings.NewReplacer("ADDRESS", address, "REGION", region).Replace(service)
	}
	s.Apply(decode(t, "kube", at("10.0.0.1", "here")))
	s.Apply(inCluster("east", decode(t, "kube east", at("10.0.0.2", "there"))))
	host := value.ServiceKey{Host: "web.shop.svc.cluster.local", Namespace: "shop"}
	endpoints := func() (out []string) {
		for _, e := range k.state.endpoints[host].All() {
			id := e.Identity.Value()
			out = append(out, fmt.Sprintf("%s %s %s %s", e.Addresses[0], id.Cluster, e.Locality.Region,
				e.Labels["topology.istio.io/cluster"]))
		}
		return out
	}
	want := []string{"10.0.0.1 Kubernetes here Kubernetes", "10.0.0.2 east there east"}
	if got := endpoints(); !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	if svc := k.state.services[host]; svc.Object.Cluster != "" {
		t.Errorf("%v decides, and not the object of pilotd's own cluster", svc.Object)
	}
	for _, kind := range []value.Kind{value.KindService, value.KindEndpointSlice, value.KindPod} {
		name := map[value.Kind]string{value.KindService: "web", value.KindEndpointSlice: "web-1", value.KindPod: "web-a"}
		s.Apply([]Event{{Source: "kube", Key: value.ObjectKey{Kind: kind, Namespace: "shop", Name: name[kind]}}})
	}
	if got := endpoints(); !slices.Equal(got, want[1:]) {
		t.Errorf("without the objects of its own cluster: got %q, want %q", got, want[1:])
	}
	if svc := k.state.services[host]; svc == nil || svc.Object.Cluster != "east" {
		t.Errorf("the service of the other cluster is not in force: %v", svc)
	}
}

// Two groups have a kind of one name: the objects are two.
func TestGroupsHaveKindsOfOneName(t *testing.T) {
	k := newKeeper()
	s := NewStore(k, quiet(t), "kube")
	s.Synced("kube")
	events := decode(t, "kube", `
kind: Gateway
metadata: {name: x, namespace: a}
spec: {servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}`)
	other := value.ObjectKey{Kind: value.KindOf("gateway.networking.k8s.io", "Gateway"), Namespace: "a", Name: "x"}
	s.Apply(append(events, Event{Source: "kube", Key: other, Object: NotServed{}}))
	s.Apply([]Event{{Source: "kube", Key: other}})
	if k.state.objects[events[0].Key] == nil {
		t.Error("the end of the Gateway API's Gateway ends Istio's")
	}
	if got := other.String(); got != "Gateway.gateway.networking.k8s.io a/x" {
		t.Errorf("pages call it %q", got)
	}
}

// TestSourcesMergeByPrecedence: of the sources that hold an object, the first of those given to NewStore counts, and
// the next one's comes back when it goes, in whatever order events come.
func TestSourcesMergeByPrecedence(t *testing.T) {
	order := []string{"flag", "kube", "kube east", "dir"}
	rapid.Check(t, func(t *rapid.T) {
		b := snapshot.NewBuilder(nil)
		s := NewStore(b, Settings{Log: testLog(nil)}, order...)
		held := map[string]string{}
		key := value.ObjectKey{Kind: value.KindDestinationRule, Namespace: "a", Name: "x"}
		for _, source := range order {
			s.Synced(source)
		}
		for i := range rapid.IntRange(1, 12).Draw(t, "events") {
			e := Event{Source: rapid.SampledFrom(order).Draw(t, "source"), Key: key}
			if delete(held, e.Source); rapid.Bool().Draw(t, "there") {
				host := fmt.Sprintf("h%d.example.com", i)
				held[e.Source] = host
				o := &clientnet.DestinationRule{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x"}}
				o.Spec.Host = host
				e.Object = o
			}
			s.Apply([]Event{e})
			want := ""
			for _, source := range order {
				if host, ok := held[source]; ok {
					want = host
					break
				}
			}
			got := ""
			if d := b.View().Snapshot.DestinationRule("a", "x"); d != nil {
				got = d.Host
			}
			if got != want {
				t.Fatalf("in force is the rule for %q, want %q of %v", got, want, held)
			}
		}
	})
}

// TestLabelsOfNames: what is one part of a DNS name. Upper case is as good as lower case, but only of ASCII: the Kelvin
// sign is no k.
func TestLabelsOfNames(t *testing.T) {
	for text, want := range map[string]bool{"a": true, "A-b": true, "0": true, "": false, "-a": false, "a-": false,
		"a.b": false, "a_b": false, "\u212a": false, strings.Repeat("x", 63): true, strings.Repeat("x", 64): false} {
		if isLabel(text) != want {
			t.Errorf("%q is a label: %v", text, !want)
		}
	}
}
