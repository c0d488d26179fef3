package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pilotd/pilotd/loadtest/mesh"
)

func TestRealServer(t *testing.T) {
	w := newTestCluster(t)
	everything := shape(t, "everything")
	if _, err := Open(t.Context(), w.options); err == nil || !strings.Contains(err.Error(), "populate it first") {
		t.Error("there is no mesh, and it opens: ", err)
	}
	told := 0
	w.options.Progress = func(Progress) { told++ }
	if p := w.populate(everything); p.Written != p.Total || p.Kept+p.Removed != 0 {
		t.Errorf("%+v", p)
	}
	w.options.Progress = nil
	w.holds(everything)
	w.checkPods(mesh.New(everything))
	t.Run("edits", func(t *testing.T) { w.edits(t, everything) })
	t.Run("what others did meanwhile", func(t *testing.T) { w.meddled(t, everything) })
	t.Run("another shape", func(t *testing.T) { w.another(t) })
	t.Run("what is not ours", func(t *testing.T) { w.foreign(t) })
	t.Run("Istio's own definitions", func(t *testing.T) { w.strict(t) })
}

// checkPods looks at whether pods are complete, and say what their sidecars say.
func (w *testCluster) checkPods(m *mesh.Mesh) {
	w.t.Helper()
	pods := w.pods()
	if len(pods) != m.Workloads()+m.Gateways() {
		w.t.Fatalf("%d pods", len(pods))
	}
	if o := pods[m.GatewayNode(0).Metadata.Fields["NAME"].GetStringValue()]; len(o.Spec.Containers) != 1 ||
		o.Spec.Containers[0].Args[1] != "router" {
		w.t.Errorf("the pod of a gateway: %+v", o.Spec.Containers)
	}
	for i := range m.Workloads() {
		node := m.Node(i).Metadata.Fields
		o := pods[node["NAME"].GetStringValue()]
		if o == nil || o.Status.Phase != corev1.PodRunning || o.Status.PodIP != node["INSTANCE_IPS"].GetStringValue() ||
			len(o.Status.Conditions) != 4 ||
			len(o.Status.ContainerStatuses) != 2 || len(o.OwnerReferences) != 1 ||
			o.Spec.Containers[1].Name != "istio-proxy" {
			w.t.Fatalf("pod of workload %d: %+v", i, o)
		}
		for k, v := range node["LABELS"].GetStructValue().Fields {
			if o.Labels[k] != v.GetStringValue() {
				w.t.Errorf("%s: label %s is %q", o.Name, k, o.Labels[k])
			}
		}
	}
}

// edits are written as they say, at the moment that they say, and are undone, also by somebody else.
func (w *testCluster) edits(t *testing.T, s mesh.Shape) {
	c := w.open()
	m := c.Mesh()
	edit := func(at time.Time, err error) {
		t.Helper()
		must(t, err)
		if since := time.Since(at); since < 0 || since > time.Minute {
			t.Errorf("made %v ago", since)
		}
	}
	edit(c.Endpoint(3, 1))
	edit(c.Route(2))
	edit(c.AddRoute(3))
	edit(c.Replace(5, 4))
	edit(c.Scale(0, 230, 5))
	edit(c.Scale(9, 0, 6))
	ends := w.endpoints()
	for _, n := range []int{1, 4, 5} {
		if !slices.Contains(ends, mesh.Address(n)) {
			t.Errorf("no endpoint says %d", n)
		}
	}
	pods := w.pods()
	successor := pods[c.Successor(5, 4).Metadata.Fields["NAME"].GetStringValue()]
	if successor == nil || successor.Status.PodIP != mesh.Address(4) ||
		pods[m.Node(5).Metadata.Fields["NAME"].GetStringValue()] != nil {
		t.Errorf("pod of workload 5: %v", successor)
	}
	if got, want := len(pods), m.Workloads()+m.Gateways()+110-2; got != want || len(ends) != want+1 {
		t.Errorf("%d pods, %d endpoints, want %d", got, len(ends), want)
	}
	first, added := strings.Split(m.Host(0), "."), strings.Split(m.Host(m.Unrouted()), ".")
	if !strings.Contains(w.text("virtualservices", first[1], first[0]), mesh.Path(2)) ||
		!strings.Contains(w.text("virtualservices", added[1], added[0]+"-added"), mesh.Path(3)) {
		t.Error("the routes do not say 2 and 3")
	}
	edit(c.RemoveRoute(7))
	if got := w.text("virtualservices", added[1], added[0]+"-added"); !strings.Contains(got, "not find") {
		t.Error("the added route is still there: ", got)
	}
	edit(c.AddRoute(8))
	w.open() // of a run that came to no end
	w.holds(s)
}

// meddled lets others write what is edited: the edit comes through.
func (w *testCluster) meddled(t *testing.T, s mesh.Shape) {
	a, b := w.open(), w.open()
	for n, c := range []*Cluster{a, b, a} {
		for _, edit := range []func(int) (time.Time, error){c.Route,
			func(n int) (time.Time, error) { return c.Endpoint(1, n) }} {
			_, err := edit(n + 1)
			must(t, err)
		}
	}
	m := a.Mesh()
	slice := m.Slices(1)[0]
	must(t, a.api.remove(t.Context(), a.api.kinds["EndpointSlice"], slice))
	_, err := a.Endpoint(1, 9)
	must(t, err)
	if !slices.Contains(w.endpoints(), mesh.Address(9)) {
		t.Error("what was deleted is not there again")
	}
	must(t, a.Restore())
	// A pod whose status nobody wrote is not complete.
	pod := dress(m.Pod(0)).(*corev1.Pod)
	must(t, a.api.remove(t.Context(), a.api.kinds["Pod"], pod))
	_, err = sign(pod, live)
	must(t, err)
	must(t, a.api.clients[corev1.SchemeGroupVersion].Post().Namespace(pod.Namespace).Resource("pods").Body(pod).Do(
		t.Context()).Error())
	if p := w.populate(s); p.Written != 1 || w.pods()[pod.Name].Status.Phase != corev1.PodRunning {
		t.Errorf("%+v %s", p, w.pods()[pod.Name].Status.Phase)
	}
	w.holds(s)
}

func (w *testCluster) another(t *testing.T) {
	small := shape(t, "small")
	small.Seed = 7
	if p := w.populate(small); p.Removed == 0 || p.Written == 0 {
		t.Errorf("%+v", p)
	}
	w.holds(small)
	entries := shape(t, "entries")
	entries.Services, entries.ServiceEntries = 60, mesh.ServiceEntries{Workloads: 1, Endpoints: 1}
	w.populate(entries)
	w.holds(entries)
	c := w.open()
	_, err := c.Endpoint(2, 5)
	must(t, err)
	_, err = c.Replace(1, 6)
	must(t, err)
	w.open()
	w.holds(entries)
}

// foreign objects stop a populate that would write them, and outlive a delete.
func (w *testCluster) foreign(t *testing.T) {
	if _, err := Delete(t.Context(), w.options); err != nil {
		t.Fatal(err)
	}
	for kind, names := range w.there() {
		t.Errorf("%s is left: %v", kind, names)
	}
	if err := w.api.served(soon(t)); err == nil {
		t.Error("the definitions are left")
	}
	w.populate(shape(t, "small")) // at once: what is on its way out is waited for
	const route = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: mine, namespace: default}\n"
	w.objects.Apply(route + "spec: {hosts: [mine.example.com]}\n")
	_, err := Delete(t.Context(), w.options)
	must(t, err)
	if got := w.text("virtualservices", "default", "mine"); !strings.Contains(got, "mine.example.com") {
		t.Error("somebody's route is gone: ", got)
	}
	w.objects.Delete(route)
	const theirs = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team-001}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: mine, namespace: default}\nspec: {ports: [{port: 80}]}\n"
	w.objects.Apply(theirs)
	_, err = Populate(t.Context(), w.options, shape(t, "small"))
	if !errors.Is(err, errForeign) || !strings.Contains(fmt.Sprint(err), "Namespace team-001") {
		t.Error(err)
	}
	_, err = Delete(t.Context(), w.options)
	must(t, err)
	for _, path := range []string{"/api/v1/namespaces/team-001", "/api/v1/namespaces/default/services/mine"} {
		if err := w.api.raw.Get().AbsPath(path).Do(t.Context()).Error(); err != nil {
			t.Error(err)
		}
	}
	w.objects.Delete("apiVersion: v1\nkind: Namespace\nmetadata: {name: team-001}\n")
	must(t, w.api.finalize(t.Context(), "team-001"))
}

// strict is a server with Istio's own definitions, which says of every object whether it is valid. They are left as
// they are.
func (w *testCluster) strict(t *testing.T) {
	w.objects.InstallCRDs()
	s := shape(t, "everything")
	w.populate(s)
	w.holds(s)
	_, err := Delete(t.Context(), w.options)
	must(t, err)
	must(t, w.api.served(t.Context()))
}
