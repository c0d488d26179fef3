package cluster

import (
	"context"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/loadtest/mesh"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// testCluster is a real API server.
type testCluster struct {
	t       *testing.T
	options Options
	api     *api
	objects *parts.Cluster
}

func newTestCluster(t *testing.T) *testCluster {
	if _, err := os.Stat(os.Getenv("APISERVER")); err != nil {
		t.Fatalf("APISERVER names no API server (%v): `make unit` builds one and sets it", err)
	}
	server := parts.StartAPIServer(t)
	w := &testCluster{t: t, options: Options{Kubeconfig: server.Kubeconfig, Workers: 16},
		objects: parts.NewBareCluster(t, server)}
	var err error
	w.api, err = connect(w.options)
	must(t, err)
	return w
}

func shape(t *testing.T, name string) mesh.Shape {
	t.Helper()
	s, err := mesh.Named(name)
	must(t, err)
	return s
}

func (w *testCluster) populate(s mesh.Shape) Progress {
	w.t.Helper()
	p, err := Populate(w.t.Context(), w.options, s)
	must(w.t, err)
	return p
}

func (w *testCluster) open() *Cluster {
	w.t.Helper()
	c, err := Open(w.t.Context(), w.options)
	must(w.t, err)
	must(w.t, c.Restore())
	return c
}

// there returns the names of all that load tests made, by kind.
func (w *testCluster) there() map[string][]string {
	w.t.Helper()
	found, err := w.api.inventory(w.t.Context(), label)
	must(w.t, err)
	return named(found)
}

func named(found inventory) map[string][]string {
	out := map[string][]string{}
	for kind, objects := range found {
		for n := range objects {
			out[kind] = append(out[kind], n.namespace+"/"+n.name)
		}
		slices.Sort(out[kind])
	}
	return out
}

// want returns the names of all that a shape is made of.
func want(s mesh.Shape) map[string][]string {
	found := inventory{"ConfigMap": {{homeNamespace, shapeName}: {}}}
	for o := range objects(mesh.New(s), s) {
		if found[kindOf(o)] == nil {
			found[kindOf(o)] = map[name]state{}
		}
		found[kindOf(o)][nameOf(o)] = state{}
	}
	return named(found)
}

// holds fails unless what load tests made is the mesh of a shape.
func (w *testCluster) holds(s mesh.Shape) {
	w.t.Helper()
	if there, want := w.there(), want(s); !maps.EqualFunc(there, want, slices.Equal) {
		for kind := range want {
			if !slices.Equal(there[kind], want[kind]) {
				w.t.Errorf("%s: %d objects, want %d", kind, len(there[kind]), len(want[kind]))
			}
		}
	}
	if p := w.populate(s); p.Written != 0 || p.Removed != 0 || p.Kept != p.Total {
		w.t.Errorf("the second time: %+v", p)
	}
}

// pods returns all pods of the mesh.
func (w *testCluster) pods() map[string]*corev1.Pod {
	w.t.Helper()
	var list corev1.PodList
	must(w.t, w.api.clients[corev1.SchemeGroupVersion].Get().Resource("pods").VersionedParams(
		&metav1.ListOptions{LabelSelector: label}, metav1.ParameterCodec).Do(w.t.Context()).Into(&list))
	out := map[string]*corev1.Pod{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out
}

// endpoints returns all addresses in EndpointSlices.
func (w *testCluster) endpoints() (out []string) {
	w.t.Helper()
	var list discoveryv1.EndpointSliceList
	must(w.t, w.api.clients[discoveryv1.SchemeGroupVersion].Get().Resource("endpointslices").VersionedParams(
		&metav1.ListOptions{LabelSelector: label}, metav1.ParameterCodec).Do(w.t.Context()).Into(&list))
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			out = append(out, e.Addresses...)
		}
	}
	return out
}

// text returns an object of Istio's as JSON, or why there is none.
func (w *testCluster) text(resource, namespace, name string) string {
	b, err := w.api.raw.Get().AbsPath("/apis/networking.istio.io/v1/namespaces", namespace, resource,
		name).Do(w.t.Context()).Raw()
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// soon returns a context that ends before anybody would wait for what does not come.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	t.Cleanup(cancel)
	return ctx
}
