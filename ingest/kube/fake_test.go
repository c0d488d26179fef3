package kube

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// fakeAPI is as much of an API server as a reflector needs: lists, and watches with or without the initial events, of
// what the test put there.
type fakeAPI struct {
	*httptest.Server

	mu sync.Mutex
	// Guarded by mu.
	version   int
	resources map[string]map[string]object // by path, by namespace/name; nil is not served
	watches   map[string][]chan event      // by path
	asked     map[string]*http.Request     // the last request, by path
	held      map[string]chan struct{}     // requests for a path wait for it
	broken    map[string]http.HandlerFunc  // what answers instead, by path
	old       bool                         // watches do not begin with what there is
	pages     int                          // lists that were cut short
}

// object is an object in JSON.
type object map[string]any

func (o object) name() string {
	m := o["metadata"].(map[string]any)
	ns, _ := m["namespace"].(string)
	return ns + "/" + m["name"].(string)
}

func (o object) version() int {
	v, _ := strconv.Atoi(o["metadata"].(map[string]any)["resourceVersion"].(string))
	return v
}

// event is an event of a watch.
type event struct {
	Type   string `json:"type"`
	Object object `json:"object"`
}

// newFakeAPI starts a server with Kubernetes's own kinds and no CRDs.
func newFakeAPI(t testing.TB) *fakeAPI {
	f := &fakeAPI{
		version: 1, resources: map[string]map[string]object{}, watches: map[string][]chan event{},
		asked: map[string]*http.Request{}, held: map[string]chan struct{}{}, broken: map[string]http.HandlerFunc{},
	}
	for _, path := range []string{
		"/api/v1/namespaces", "/api/v1/nodes", "/api/v1/pods", "/api/v1/services",
		"/apis/discovery.k8s.io/v1/endpointslices",
		"/api/v1/namespaces/istio-system/configmaps", crdPath,
	} {
		f.resources[path] = map[string]object{}
	}
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

const (
	crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	vsPath  = "/apis/networking.istio.io/v1/virtualservices"
)

func (f *fakeAPI) config() *rest.Config { return &rest.Config{Host: f.URL} }

// put adds or changes an object given as JSON.
func (f *fakeAPI) put(path, text string) {
	var o object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	o["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(f.version)
	kind := "ADDED"
	if f.resources[path] == nil {
		f.resources[path] = map[string]object{}
	} else if _, ok := f.resources[path][o.name()]; ok {
		kind = "MODIFIED"
	}
	f.resources[path][o.name()] = o
	f.tell(path, event{kind, o})
}

func (f *fakeAPI) delete(path, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	o := maps.Clone(f.resources[path][name])
	meta := maps.Clone(o["metadata"].(map[string]any))
	meta["resourceVersion"] = strconv.Itoa(f.version)
	o["metadata"] = meta
	delete(f.resources[path], name)
	f.tell(path, event{"DELETED", o})
}

// serve makes a path known.
func (f *fakeAPI) serve(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resources[path] = map[string]object{}
}

// unserve makes a path unknown and ends its watches.
func (f *fakeAPI) unserve(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.resources, path)
	for _, w := range f.watches[path] {
		close(w)
	}
	delete(f.watches, path)
}

// hold makes requests for a path wait until the result is called.
func (f *fakeAPI) hold(path string) (release func()) {
	held := make(chan struct{})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held[path] = held
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.held, path)
		close(held)
	}
}

// spoil lets something else answer for a path, or mends it when that is nil. Watches of the path end.
func (f *fakeAPI) spoil(path string, answer http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken[path] = answer
	for _, w := range f.watches[path] {
		close(w)
	}
	delete(f.watches, path)
}

// refusal answers every request with a status.
func refusal(code int, reason string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(object{"kind": "Status", "apiVersion": "v1", "status": "Failure",
			"reason": reason, "message": "no luck", "code": code})
	}
}

// request returns the last request for a path; nil when there was none.
func (f *fakeAPI) request(path string) *http.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[path]
}

// tell is called under mu.
func (f *fakeAPI) tell(path string, e event) {
	for _, w := range f.watches[path] {
		w <- e
	}
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	f.mu.Lock()
	if held := f.held[path]; held != nil {
		f.mu.Unlock()
		select {
		case <-held:
		case <-r.Context().Done():
		}
		f.mu.Lock()
	}
	objects, ok := f.resources[path]
	f.asked[path] = r
	if broken := f.broken[path]; broken != nil {
		f.mu.Unlock()
		broken(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if !ok {
		f.mu.Unlock()
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(object{"kind": "Status", "apiVersion": "v1", "status": "Failure",
			"reason": "NotFound", "code": 404})
		return
	}
	first := make([]object, 0, len(objects))
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		first = append(first, objects[name])
	}
	version := strconv.Itoa(f.version)
	kind, apiVersion := kindAt(path)
	q := r.URL.Query()
	if q.Get("watch") == "" {
		first, next := f.page(q, first)
		f.mu.Unlock()
		_ = json.NewEncoder(w).Encode(object{"kind": kind + "List", "apiVersion": apiVersion,
			"metadata": object{"resourceVersion": version, "continue": next}, "items": first})
		return
	}
	if f.old && q.Get("resourceVersionMatch") != "" {
		f.mu.Unlock()
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(object{"kind": "Status", "apiVersion": "v1", "status": "Failure",
			"reason": "Invalid", "code": 422})
		return
	}
	events := make(chan event, 1000)
	f.watches[path] = append(f.watches[path], events)
	f.mu.Unlock()
	if q.Get("sendInitialEvents") == "true" {
		for _, o := range first {
			_ = json.NewEncoder(w).Encode(event{"ADDED", o})
		}
		_ = json.NewEncoder(w).Encode(event{"BOOKMARK", object{"kind": kind, "apiVersion": apiVersion,
			"metadata": object{
				"resourceVersion": version, "annotations": object{"k8s.io/initial-events-end": "true"},
			}}})
	} else {
		since, _ := strconv.Atoi(q.Get("resourceVersion"))
		for _, o := range first {
			if o.version() > since {
				_ = json.NewEncoder(w).Encode(event{"ADDED", o})
			}
		}
	}
	stream(w, r, events)
}

// page returns the part of a list that a request asks for, and the mark of the next; as a real server, it cuts lists of
// the newest state alone. Called under mu.
func (f *fakeAPI) page(q url.Values, all []object) (part []object, next string) {
	from, _ := strconv.Atoi(q.Get("continue"))
	limit, _ := strconv.Atoi(q.Get("limit"))
	if part = all[from:]; limit > 0 && len(part) > limit && q.Get("resourceVersion") == "" {
		f.pages++
		return part[:limit], strconv.Itoa(from + limit)
	}
	return part, ""
}

func stream(w http.ResponseWriter, r *http.Request, events chan event) {
	for {
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case e, ok := <-events:
			if !ok {
				return
			}
			_ = json.NewEncoder(w).Encode(e)
		}
	}
}

func kindAt(path string) (kind, apiVersion string) {
	parts := strings.Split(path, "/")
	apiVersion = strings.TrimPrefix(strings.Join(parts[2:min(4, len(parts)-1)], "/"), "/")
	if parts[1] == "api" {
		apiVersion = "v1"
	}
	switch parts[len(parts)-1] {
	case "namespaces":
		kind = "Namespace"
	case "nodes":
		kind = "Node"
	case "pods":
		kind = "Pod"
	case "services":
		kind = "Service"
	case "configmaps":
		kind = "ConfigMap"
	case "endpointslices":
		kind = "EndpointSlice"
	case "virtualservices":
		kind = "VirtualService"
	case "customresourcedefinitions":
		kind, apiVersion = "PartialObjectMetadata", "meta.k8s.io/v1"
	}
	return kind, apiVersion
}

// crd returns the metadata of a CRD of Istio's.
func crd(resource string) string {
	return `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"` + resource +
		`.networking.istio.io"}}`
}

// vs returns a VirtualService of one host, in a version of the group.
func vs(version, name, host string) string {
	return `{"kind":"VirtualService","apiVersion":"networking.istio.io/` + version +
		`","metadata":{"namespace":"default","name":"` + name + `",
		"managedFields":[{"manager":"x"}],"annotations":{"other/note":"x","networking.istio.io/note":"y"}},
		"spec":{"hosts":["` + host + `"],"http":[{"timeout":"1s","route":[{"destination":{"host":"` + host + `"}}]}]}}`
}
