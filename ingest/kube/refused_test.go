package kube

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/ingest/sinktest"
	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot/value"
)

// ofKind returns what is said of a kind that cannot be read.
func ofKind(told *sinktest.Told, k value.Kind) string {
	for _, r := range told.Rejected[value.ObjectKey{Kind: k}.String()] {
		if r.Cause == report.Unavailable {
			return r.Reason
		}
	}
	return ""
}

func webPage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	_, _ = io.WriteString(w, "<html><body>"+strings.Repeat("Please\nlog in. ", 1000)+"</body></html>")
}

func garbage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":7`)
}

// A kind that pilotd can do without, and that the server does not give, is waited for a while; then the rest is served
// without it, and it is told that this is so. When it can be read its objects come in, and nothing is told of it any
// more.
func TestAnOptionalKindThatCannotBeReadDelaysOnlyForAGrace(t *testing.T) {
	answers := map[string]http.HandlerFunc{
		"forbidden": refusal(403, "Forbidden"), "unauthorized": refusal(401, "Unauthorized"),
		"failing": refusal(500, "InternalError"), "unavailable": refusal(503, "ServiceUnavailable"),
		"no such resource": refusal(404, "NotFound"), "a web page": webPage, "garbage": garbage,
		"an endless list": func(w http.ResponseWriter, r *http.Request) { endless(w, r) },
		"cut off":         func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) },
		"silent":          func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := newFakeAPI(t)
			api.put("/api/v1/services", `{"kind":"Service","apiVersion":"v1","metadata":{"namespace":"a","name":"s"}}`)
			api.put("/api/v1/nodes", `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n"}}`)
			api.spoil("/api/v1/nodes", answer)
			r := start(t, Options{Config: api.config(), Grace: 100 * time.Millisecond})
			r.Until(t, "sync", synced)
			told := r.Now()
			if reason := ofKind(told, value.KindNode); !strings.Contains(reason, "localities") ||
				len(reason) > 2*maxReason {
				t.Errorf("told of nodes: %q", reason)
			}
			if !has(value.ObjectKey{Kind: value.KindService, Namespace: "a", Name: "s"})(told) {
				t.Error("synced without the Service")
			}
			if name == "silent" {
				return // Its end takes as long as patience does.
			}
			api.spoil("/api/v1/nodes", nil)
			r.Until(t, "the node", has(value.ObjectKey{Kind: value.KindNode, Name: "n"}))
			r.Until(t, "the end of the report",
				func(told *sinktest.Told) bool { return ofKind(told, value.KindNode) == "" })
		})
	}
}

// endless answers a list with pages that each name a next one.
func endless(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		refusal(422, "Invalid")(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object{"kind": "NodeList", "apiVersion": "v1",
		"metadata": object{"resourceVersion": "1", "continue": "x"}, "items": []object{}})
}

// Without Services there is no mesh: they are waited for, and it is told which kind is missing, since when and why.
func TestAKindThatIsNeededIsWaitedForByName(t *testing.T) {
	api := newFakeAPI(t)
	attempt := make(chan struct{}, 1)
	api.spoil("/api/v1/services", func(w http.ResponseWriter, req *http.Request) {
		select {
		case attempt <- struct{}{}:
		default:
		}
		refusal(403, "Forbidden")(w, req)
	})
	r := sinktest.New()
	s := run(t, r, Options{Config: api.config(), Grace: time.Millisecond})
	for n := 0; n < 2 || len(s.Waiting()) != 1; n++ { // Each attempt gives the other kinds more time to come.
		select {
		case <-attempt:
		case <-time.After(30 * time.Second):
			t.Fatalf("no further attempt after %d; waiting for %v", n, s.Waiting())
		}
	}
	r.Until(t, "the report", func(told *sinktest.Told) bool { return ofKind(told, value.KindService) != "" })
	if w := s.Waiting()[0]; !strings.HasPrefix(w, "services since ") ||
		!strings.Contains(w, "no luck: expected the right to list and watch") {
		t.Errorf("waiting for %q", w)
	}
	if synced(r.Now()) {
		t.Error("synced without Services")
	}
	api.spoil("/api/v1/services", nil)
	r.Until(t, "sync", synced)
	if w := s.Waiting(); len(w) != 0 {
		t.Errorf("waiting for %v", w)
	}
}

// Where CRDs may not be listed, Istio's kinds are asked for one by one; a role of one namespace is enough for that, and
// nothing is waited for in vain.
func TestRightsInOneNamespaceAreEnough(t *testing.T) {
	api := newFakeAPI(t)
	for _, path := range []string{"/api/v1/namespaces", "/api/v1/nodes", crdPath,
		"/api/v1/namespaces/istio-system/configmaps"} {
		api.spoil(path, refusal(403, "Forbidden"))
	}
	ns, istio := "/api/v1/namespaces/app/", "/apis/networking.istio.io/v1/namespaces/app/"
	for _, path := range []string{ns + "pods", ns + "services",
		"/apis/discovery.k8s.io/v1/namespaces/app/endpointslices"} {
		api.serve(path)
	}
	api.put(istio+"virtualservices", vs("v1", "x", "x.com"))
	// A kind that this role may not read.
	for _, version := range ingest.NewKindTable()[value.KindGateway].GroupVersions() {
		api.spoil(strings.Replace(istio, "/v1/", "/"+version.Version+"/", 1)+"gateways", refusal(403, "Forbidden"))
	}
	began := time.Now()
	r := start(t, Options{Config: api.config(), Namespace: "app", Grace: time.Hour})
	r.Until(t, "sync", synced)
	t.Logf("synced after %v", time.Since(began))
	if host(r.Now(), "x") != "x.com" {
		t.Error("synced without the VirtualService")
	}
	for _, k := range []value.Kind{value.KindNode, value.KindNamespace, value.KindGateway, value.KindMeshConfig} {
		if ofKind(r.Now(), k) == "" {
			t.Errorf("nothing is told of kind %s, which may not be read", k)
		}
	}
	api.put(istio+"virtualservices", vs("v1", "x", "x2.com"))
	r.Until(t, "an edit", hosts("x", "x2.com"))
}

// One object that does not decode is refused; the other objects of its kind come, in the first list and afterwards.
func TestAnObjectOfKubernetesThatDoesNotDecodeHurtsOnlyItself(t *testing.T) {
	for _, old := range []bool{false, true} {
		t.Run(fmt.Sprint("old=", old), func(t *testing.T) {
			api := newFakeAPI(t)
			api.old = old
			service := func(name, spec string) {
				api.put("/api/v1/services", `{"kind":"Service","apiVersion":"v1","metadata":{"namespace":"a","name":"`+
					name+`"},"spec":`+spec+`}`)
			}
			key := func(name string) value.ObjectKey {
				return value.ObjectKey{Kind: value.KindService, Namespace: "a", Name: name}
			}
			rejected := func(name string) func(*sinktest.Told) bool {
				return func(told *sinktest.Told) bool { return len(told.Rejected[key(name).String()]) > 0 }
			}
			service("good", `{}`)
			service("bad", `{"ports":"many"}`)
			r := start(t, Options{Config: api.config()})
			r.Until(t, "sync", synced)
			if told := r.Now(); !has(key("good"))(told) || has(key("bad"))(told) || !rejected("bad")(told) {
				t.Errorf("have %v, rejected %v", told.Objects, told.Rejected)
			}
			service("later", `{}`)
			r.Until(t, "a good one", has(key("later")))
			service("worse", `{"ports":[{"port":"x"}]}`)
			r.Until(t, "the report of another", rejected("worse"))
			service("last", `{}`)
			r.Until(t, "a good one after it", has(key("last")))
			service("bad", `{}`)
			r.Until(t, "the repair", func(told *sinktest.Told) bool {
				return has(key("bad"))(told) &&
					!rejected("bad")(told)
			})
		})
	}
}

// A panic while an object is read, or taken by the Store, leaves out that object alone.
func TestAPanicHurtsOnlyItsObject(t *testing.T) {
	r := &fragile{Recorder: sinktest.New()}
	s := detached(r)
	k := builtinKind(t, value.KindService)
	read := k.read
	k.read = func(o any) (any, *ingestRejection) {
		if m, _ := accessor(o); m.GetName() == "unreadable" {
			panic("cannot read")
		}
		return read(o)
	}
	c := newCollector(k, s)
	for _, name := range []string{"one", "unreadable", "poison", "two"} {
		if err := c.Add(newService(name)); err != nil {
			t.Fatal(err)
		}
	}
	s.hand(s.outbox.take())
	told := r.Now()
	for name, want := range map[string]bool{"one": true, "two": true, "unreadable": false, "poison": false} {
		key := value.ObjectKey{Kind: value.KindService, Namespace: "a", Name: name}
		why := told.Rejected[key.String()]
		if has(key)(told) != want || want != (len(why) == 0) || !want && why[0].Cause != report.Panicked {
			t.Errorf("%s: in force %v, rejected %v", name, has(key)(told), why)
		}
	}
	if s.Panics() == 0 {
		t.Error("no panic was counted")
	}
}

// A server that accepts requests and then says nothing is asked again.
func TestASilentServerIsAskedAgain(t *testing.T) {
	asked := make(chan struct{}, 10)
	server := newSilentServer(t, asked)
	client := &http.Client{Transport: impatient{http.DefaultTransport, 20 * time.Millisecond}}
	defer client.CloseIdleConnections()
	for _, path := range []string{"/silent", "/silent?watch=true&sendInitialEvents=true", "/stops"} {
		resp, err := client.Get(server + path)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "did not answer within 20ms") {
			t.Errorf("%s: %v", path, err)
		}
	}
	resp, err := client.Get(server + "/stops?watch=true&timeoutSeconds=300")
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	if n, err := resp.Body.Read(b); err != nil || n == 0 {
		t.Errorf("a watch: read %d, %v", n, err)
	}
	_ = resp.Body.Close()
}
