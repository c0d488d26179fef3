package mesh

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	networkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// named returns a mesh of a shape that must exist.
func named(t *testing.T, name string) *Mesh {
	t.Helper()
	s, err := Named(name)
	must(t, err)
	return New(s)
}

func key(o Object) string {
	return fmt.Sprintf("%s %s/%s", o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName())
}

// digest returns a hash of all objects and nodes of a mesh.
func digest(t *testing.T, m *Mesh) string {
	t.Helper()
	h := sha256.New()
	for o := range m.Objects() {
		text, err := json.Marshal(o)
		must(t, err)
		h.Write(append(text, '\n'))
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// A mesh is a function of its shape, on every machine and in every build: what it is made of changes only with intent.
func TestMeshesAreReproducible(t *testing.T) {
	for name, want := range map[string]string{"small": "72afa94409bac40a", "everything": "2f704f83e63b2526"} {
		m := named(t, name)
		if got := digest(t, m); got != digest(t, m) || got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		before := digest(t, m)
		m.Seed++
		if digest(t, m) == before {
			t.Errorf("%s: another seed makes the same mesh", name)
		}
	}
}

// Every shape that comes along has the number of objects that it says.
func TestShapesHaveWhatTheySay(t *testing.T) {
	for name, want := range map[string]map[string]int{
		"small":      {"Namespace": 4, "Node": 30, "Service": 40, "Pod": 80, "EndpointSlice": 40},
		"gateways":   {"Gateway": 4, "Service": 1004, "Pod": 2020},
		"sidecars":   {"Sidecar": 10_000, "Service": 5000},
		"headless":   {"Pod": 2000, "EndpointSlice": 510},
		"endpoints":  {"Pod": 11_000, "EndpointSlice": 600},
		"entries":    {"ServiceEntry": 1150, "WorkloadEntry": 2150, "Service": 0, "Pod": 0, "EndpointSlice": 0},
		"everything": {"Sidecar": 22, "Gateway": 2, "ServiceEntry": 9, "WorkloadEntry": 6, "Pod": 224},
	} {
		m, counts, seen := named(t, name), map[string]int{}, map[string]bool{}
		routes := 0
		for o := range m.Objects() {
			counts[o.GetObjectKind().GroupVersionKind().Kind]++
			if seen[key(o)] {
				t.Errorf("%s: %s is there twice", name, key(o))
			}
			seen[key(o)] = true
			if vs, ok := o.(*networkingv1.VirtualService); ok && vs.Name[:4] == "host" {
				routes += len(vs.Spec.Http)
			}
		}
		for kind, n := range want {
			if counts[kind] != n {
				t.Errorf("%s has %d %ss, want %d", name, counts[kind], kind, n)
			}
		}
		if routes != m.Gateway.Routes {
			t.Errorf("%s: gateways have %d routes, want %d", name, routes, m.Gateway.Routes)
		}
	}
}

func TestEveryNamedShapeIsOne(t *testing.T) {
	for _, name := range Names() {
		s, err := Named(name)
		if err != nil || s.About == "" {
			t.Error(name, s.About, err)
		}
		m := New(s)
		for _, i := range []int{0, m.Workloads() / 2, m.Workloads() - 1} {
			if s, pod := m.servicePod(i); m.workload(s, pod) != i {
				t.Errorf("%s: workload %d is pod %d of service %d, which is %d", name, i, pod, s, m.workload(s, pod))
			}
		}
	}
}

// As in a real mesh no two workloads are alike, and what a proxy says of itself is what its pod says.
func TestWorkloadsHaveAllOfTheirOwn(t *testing.T) {
	m := named(t, "everything")
	nodes := map[string]*corev3.Node{}
	for i := range m.Workloads() {
		n := m.Node(i)
		nodes[n.Metadata.Fields["NAME"].GetStringValue()] = n
	}
	for i := range m.Gateways() {
		n := m.GatewayNode(i)
		nodes[n.Metadata.Fields["NAME"].GetStringValue()] = n
	}
	addresses, hashes := map[string]bool{}, map[string]bool{}
	endpoints := map[string]string{} // by pod
	for o := range m.Objects() {
		switch o := o.(type) {
		case *discoveryv1.EndpointSlice:
			if len(o.Endpoints) > sliceSize {
				t.Errorf("%s has %d endpoints", o.Name, len(o.Endpoints))
			}
			for _, e := range o.Endpoints {
				if endpoints[e.TargetRef.Name] != "" {
					t.Errorf("%s is an endpoint twice", e.TargetRef.Name)
				}
				endpoints[e.TargetRef.Name] = e.Addresses[0]
			}
		case *corev1.Pod:
			addresses[o.Status.PodIP], hashes[o.Labels["pod-template-hash"]] = true, true
			n := nodes[o.Name]
			if n == nil {
				t.Fatalf("no proxy for %s", o.Name)
			}
			for k, v := range o.Labels {
				if got := n.Metadata.Fields["LABELS"].GetStructValue().Fields[k].GetStringValue(); got != v {
					t.Errorf("%s: label %s is %q, the proxy says %q", o.Name, k, v, got)
				}
			}
			if n.Metadata.Fields["INSTANCE_IPS"].GetStringValue() != o.Status.PodIP ||
				endpoints[o.Name] != o.Status.PodIP {
				t.Errorf("%s: addresses differ: %s %s", o.Name, o.Status.PodIP, endpoints[o.Name])
			}
		}
	}
	all := m.Workloads() + m.Gateways()
	if len(nodes) != all || len(addresses) != all || len(hashes) != all || len(endpoints) != all {
		t.Errorf("of %d: %d names, %d addresses, %d hashes, %d endpoints", all, len(nodes), len(addresses), len(hashes),
			len(endpoints))
	}
}

// contents returns objects as text, by key.
func contents(t *testing.T, objects func(func(Object) bool)) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for o := range objects {
		text, err := json.Marshal(o)
		must(t, err)
		out[key(o)] = text
	}
	return out
}

func compare(t *testing.T, got, want map[string][]byte) {
	t.Helper()
	for k, text := range want {
		if !bytes.Equal(got[k], text) {
			t.Errorf("%s is\n%s\nwant\n%s", k, got[k], text)
		}
	}
	for k := range got {
		if want[k] == nil {
			t.Errorf("%s should not be there", k)
		}
	}
}
