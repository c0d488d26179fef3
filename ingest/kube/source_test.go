package kube

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
	networking "istio.io/client-go/pkg/apis/networking/v1"

	"github.com/pilotd/pilotd/ingest/sinktest"
	"github.com/pilotd/pilotd/snapshot/value"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a source until the test ends, and waits for its end.
func start(t *testing.T, o Options) *sinktest.Recorder {
	t.Helper()
	r := sinktest.New()
	o.Sink = r
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		before := len(r.Now().Applies)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for _, events := range r.Now().Applies[before:] {
			for _, e := range events {
				if e.Object == nil {
					t.Errorf("deleted by the end of the source: %v", e.Key)
				}
			}
		}
	})
	return r
}

func synced(told *sinktest.Told) bool { return slices.Equal(told.Synced, []string{SourceName}) }

func virtualService(name string) value.ObjectKey {
	return value.ObjectKey{Kind: value.KindVirtualService, Namespace: "default", Name: name}
}

func host(told *sinktest.Told, name string) string {
	if v, ok := told.Objects[virtualService(name)].Object.(*networking.VirtualService); ok {
		return v.Spec.Hosts[0]
	}
	return ""
}

func hosts(name, want string) func(*sinktest.Told) bool {
	return func(told *sinktest.Told) bool { return host(told, name) == want }
}

func has(key value.ObjectKey) func(*sinktest.Told) bool {
	return func(told *sinktest.Told) bool { _, ok := told.Objects[key]; return ok }
}

func TestWithoutIstioEverythingElseSyncs(t *testing.T) {
	api := newFakeAPI(t)
	api.put("/api/v1/services", `{"kind":"Service","apiVersion":"v1","metadata":{"namespace":"a","name":"s"}}`)
	r := start(t, Options{Config: api.config()})
	r.Until(t, "sync", synced)
	service := value.ObjectKey{Kind: value.KindService, Namespace: "a", Name: "s"}
	if !has(service)(r.Now()) {
		t.Fatalf("have %v", r.Now().Objects)
	}
	api.delete("/api/v1/services", "a/s")
	r.Until(t, "the end of the service", func(told *sinktest.Told) bool { return len(told.Objects) == 0 })

	if a := api.request("/api/v1/pods").Header.Get("Accept"); !strings.Contains(a,
		"application/vnd.kubernetes.protobuf") {
		t.Errorf("pods were asked for as %s", a)
	}
	if a := api.request(crdPath).Header.Get("Accept"); !strings.Contains(a, "as=PartialObjectMetadata") {
		t.Errorf("CRDs were asked for as %s", a)
	}
}

func TestKindStartsWithItsCRDAndEndsWithIt(t *testing.T) {
	api := newFakeAPI(t)
	r := start(t, Options{Config: api.config()})
	r.Until(t, "sync", synced)
	api.put(crdPath, crd("virtualservices"))
	api.put(vsPath, vs("v1", "x", "x.com")) // The kind is served some time after its CRD is there.
	r.Until(t, "the object", hosts("x", "x.com"))
	api.put(vsPath, vs("v1", "x", "x2.com"))
	r.Until(t, "its edit", hosts("x", "x2.com"))

	api.delete(crdPath, "/virtualservices.networking.istio.io")
	r.Until(t, "the end of the kind", hosts("x", ""))
	api.unserve(vsPath)

	api.put(vsPath, vs("v1", "y", "y.com"))
	api.put(crdPath, crd("virtualservices"))
	r.Until(t, "its return", hosts("y", "y.com"))
	if n := len(r.Now().Synced); n != 1 {
		t.Errorf("synced %d times", n)
	}
}

func TestKindThatIsThereAtTheStartIsWaitedFor(t *testing.T) {
	api := newFakeAPI(t)
	api.put(crdPath, crd("virtualservices"))
	api.put(vsPath, vs("v1", "x", "x.com"))
	r := start(t, Options{Config: api.config()})
	r.Until(t, "sync", synced)
	told := r.Now()
	if host(told, "x") != "x.com" {
		t.Fatal("synced without it")
	}
	o := told.Objects[virtualService("x")].Object.(*networking.VirtualService)
	if o.ManagedFields != nil || len(o.Annotations) != 1 || o.Spec.Http[0].Timeout.Seconds != 1 {
		t.Errorf("kept %v", o)
	}
}

func TestOldServerServesOldVersions(t *testing.T) {
	api := newFakeAPI(t)
	old := strings.Replace(vsPath, "/v1/", "/v1beta1/", 1)
	api.put(crdPath, crd("virtualservices"))
	api.put(old, vs("v1beta1", "x", "x.com"))
	r := start(t, Options{Config: api.config()})
	r.Until(t, "sync", synced)
	if host(r.Now(), "x") != "x.com" {
		t.Error("not read")
	}
	// An upgrade of the CRD ends the old version.
	api.put(vsPath, vs("v1", "x", "x2.com"))
	api.unserve(old)
	r.Until(t, "the new version", hosts("x", "x2.com"))
}

func TestAnObjectThatDoesNotDecodeHurtsOnlyItself(t *testing.T) {
	api := newFakeAPI(t)
	api.put(crdPath, crd("virtualservices"))
	api.put(vsPath, vs("v1", "x", "x.com"))
	api.put(vsPath, strings.Replace(vs("v1", "bad", "bad.com"), `"1s"`, `"soon"`, 1))
	r := start(t, Options{Config: api.config()})
	r.Until(t, "sync", synced)
	told := r.Now()
	bad := virtualService("bad")
	if b := told.Rejected[bad.String()]; host(told, "x") != "x.com" || has(bad)(told) || len(b) != 1 ||
		!strings.Contains(b[0].Reason, "soon") {
		t.Errorf("have %v, rejected %v", told.Objects, told.Rejected)
	}
	api.put(vsPath, strings.Replace(vs("v1", "x", "x2.com"), `"1s"`, `"never"`, 1))
	r.Until(t, "the report", func(told *sinktest.Told) bool { return len(told.Rejected) == 2 })
	if host(r.Now(), "x") != "x.com" {
		t.Error("the last good version is not in force")
	}
	api.put(vsPath, vs("v1", "x", "x3.com"))
	api.delete(vsPath, "default/bad")
	r.Until(t, "the repair", func(told *sinktest.Told) bool {
		return host(told, "x") == "x3.com" &&
			len(told.Rejected) == 0
	})
}

func TestServerWithoutStreamsIsListedInPages(t *testing.T) {
	api := newFakeAPI(t)
	api.old = true
	const services, path = 2*page + 1, "/api/v1/services"
	put := func(i int) {
		api.put(path, fmt.Sprintf(`{"kind":"Service","apiVersion":"v1","metadata":{"namespace":"a","name":"s%04d"}}`,
			i))
	}
	for i := range services {
		put(i)
	}
	r := start(t, Options{Config: api.config()})
	r.Until(t, "sync", synced)
	if n := len(r.Now().Objects); n != services || api.pages != 2 {
		t.Errorf("%d objects after %d pages that had a next", n, api.pages)
	}
	put(services)
	r.Until(t, "one more", func(told *sinktest.Told) bool { return len(told.Objects) == services+1 })
}

func TestMeshConfigMap(t *testing.T) {
	api := newFakeAPI(t)
	path := "/api/v1/namespaces/istio-system/configmaps"
	put := func(data string) {
		api.put(path, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"istio-system","name":"istio"},`+
			`"data":{`+data+`}}`)
	}
	put(`"mesh":"a: 1","meshNetworks":"b: 2"`)
	r := start(t, Options{Config: api.config()})
	mesh := value.ObjectKey{Kind: value.KindMeshConfig, Name: "mesh"}
	is := func(want any) func(*sinktest.Told) bool {
		return func(told *sinktest.Told) bool { return told.Objects[mesh].Object == want && len(told.Rejected) == 0 }
	}
	r.Until(t, "the configuration", is("a: 1"))
	put(`"other":"x"`)
	r.Until(t, "the report", func(told *sinktest.Told) bool {
		return len(told.Rejected) == 1 &&
			told.Objects[mesh].Object == "a: 1"
	})
	put(`"mesh":"a: 2"`)
	r.Until(t, "the repair", is("a: 2"))
}

func TestEventsMergeWhileTheSinkIsBusy(t *testing.T) {
	api := newFakeAPI(t)
	api.put(crdPath, crd("virtualservices"))
	api.put(vsPath, vs("v1", "x", "0.com"))
	r := start(t, Options{Config: api.config()})
	r.Until(t, "sync", synced)
	release := r.Block()
	before := len(r.Now().Applies)
	for i := range 200 {
		api.put(vsPath, vs("v1", "x", strconv.Itoa(i+1)+".com"))
	}
	api.put(vsPath, vs("v1", "last", "last.com"))
	release()
	r.Until(t, "the last of all", func(told *sinktest.Told) bool {
		return host(told, "x") == "200.com" && host(told, "last") == "last.com"
	})
	t.Logf("201 changes in %d calls", len(r.Now().Applies)-before)
}

func TestSlowServerDelaysOnlyWhatItIsAskedFor(t *testing.T) {
	api := newFakeAPI(t)
	api.put("/api/v1/nodes", `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n"}}`)
	release := api.hold("/api/v1/services")
	r := start(t, Options{Config: api.config()})
	r.Until(t, "the other kinds", has(value.ObjectKey{Kind: value.KindNode, Name: "n"}))
	if synced(r.Now()) {
		t.Error("synced without Services")
	}
	release()
	r.Until(t, "sync", synced)
}

func TestOnlyWhatTheOptionsNameIsAskedFor(t *testing.T) {
	api := newFakeAPI(t)
	ns, mesh := "/api/v1/namespaces/app/", "/api/v1/namespaces/mesh/configmaps"
	for _, path := range []string{ns + "pods", ns + "services",
		"/apis/discovery.k8s.io/v1/namespaces/app/endpointslices", mesh} {
		api.serve(path)
	}
	r := start(t, Options{Config: api.config(), Namespace: "app", RootNamespace: "mesh", Revision: "canary"})
	r.Until(t, "sync", synced)
	for path, want := range map[string]string{
		ns + "pods":          "status.phase!=Failed,status.phase!=Succeeded",
		ns + "services":      "",
		mesh:                 "metadata.name=istio-canary",
		"/api/v1/namespaces": "metadata.name=app",
	} {
		if got := api.request(path).URL.Query().Get("fieldSelector"); got != want {
			t.Errorf("%s was asked for with %q, want %q", path, got, want)
		}
	}
	if api.request("/api/v1/pods") != nil {
		t.Error("pods of all namespaces were asked for")
	}
}

func TestWithoutAServerConfiguredNewSaysSo(t *testing.T) {
	_, err := New(Options{Kubeconfig: "/does/not/exist"})
	if err == nil || !strings.Contains(err.Error(), "/does/not/exist") {
		t.Errorf("got %v", err)
	}
}
