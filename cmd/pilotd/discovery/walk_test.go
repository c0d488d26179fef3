package discovery

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	meshv1 "istio.io/api/networking/v1alpha3"
	networkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/status"
)

// oddMesh returns what sampleMesh lacks: every resolution and protocol, endpoints of every health, and objects that are
// refused.
func oddMesh() []ingest.Event {
	var out []ingest.Event
	for _, resolution := range []meshv1.ServiceEntry_Resolution{
		meshv1.ServiceEntry_NONE, meshv1.ServiceEntry_STATIC, meshv1.ServiceEntry_DNS, meshv1.ServiceEntry_DNS_ROUND_ROBIN,
	} {
		name := strings.ReplaceAll(strings.ToLower(resolution.String()), "_", "-")
		e := &networkingv1.ServiceEntry{ObjectMeta: inShop("odd-" + name),
			Spec: meshv1.ServiceEntry{Hosts: []string{name + ".odd.example.com"}, Resolution: resolution}}
		for i, p := range []string{"HTTP", "HTTP2", "GRPC", "GRPC-Web", "HTTPS", "TCP", "TLS", "UDP", "Mongo", "Redis",
			"MySQL"} {
			e.Spec.Ports = append(e.Spec.Ports, &meshv1.ServicePort{Number: uint32(1000 + i), Name: fmt.Sprint("p", i),
				Protocol: p})
		}
		if resolution == meshv1.ServiceEntry_STATIC {
			e.Spec.Endpoints = []*meshv1.WorkloadEntry{{Address: "10.40.0.1"}, {Address: "fd00::1", Locality: "r/z/s",
				Weight: 7}}
		}
		out = append(out, put(value.KindServiceEntry, e))
	}
	unhealthy := &networkingv1.WorkloadEntry{ObjectMeta: inShop("vm-2"),
		Spec: meshv1.WorkloadEntry{Address: "10.30.0.2", Labels: map[string]string{"app": "vm"}}}
	s := slice("other").Object.(*discoveryv1.EndpointSlice)
	for i, c := range [][3]bool{{true, true, false}, {false, false, false}, {false, true, true}, {false, false, true}} {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprint("10.50.0.", i+1)},
			Conditions: discoveryv1.EndpointConditions{Ready: &c[0], Serving: &c[1], Terminating: &c[2]}})
	}
	refused := virtualService("refused", "web")
	return append(out, put(value.KindWorkloadEntry, unhealthy), put(value.KindEndpointSlice, s), refused)
}

// hostileQueries returns parameters as nobody means them.
func hostileQueries() []string {
	long := strings.Repeat("a", 100_000)
	out := []string{"", "?", "?%zz", "?;", "?proxyID", "?proxyID=&proxyID=x", "?include_eds=no&proxyID=%00", "?host=",
		"?" + long, "?host=" + long, "?proxyID=" + long}
	for _, v := range []string{"pod-1.shop", "sidecar~10.10.0.1~pod-1.shop~shop.svc.cluster.local", "~~~", ".", "..",
		"*", "\xff\xfe", "a\nb", "../../etc/passwd", "nobody.shop", hostOf("web")} {
		out = append(out, "?proxyID="+url.QueryEscape(v), "?include_eds&proxyID="+url.QueryEscape(v),
			"?host="+url.QueryEscape(v))
	}
	return out
}

// TestEveryPageOverEveryKindOfObject asks for every page with parameters of all sorts, while objects and proxies come
// and go: no page panics, and a page that has nothing to find fault with answers.
func TestEveryPageOverEveryKindOfObject(t *testing.T) {
	r := startRun(t)
	defer r.stop()
	pages := status.Handler(r.server.Metrics, status.Pages{Ready: r.server.Ready, Debug: r.server.Pages(),
		Version: "test"})
	ask := func(path string) int {
		request := httptest.NewRequest(http.MethodGet, "/debug", nil)
		request.URL.Path, request.URL.RawQuery, _ = strings.Cut(path, "?")
		request.RemoteAddr, request.Host = "127.0.0.1:40000", "localhost"
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, request)
		return w.Code
	}
	walk := func(when string) {
		names := []string{"/ready", "/metrics", "/version", "/debug", "/debug/", "/debug/pprof/",
			"/debug/pprof/goroutine", "/debug/pprof/cmdline"}
		for name := range r.server.Pages() {
			names = append(names, "/debug/"+name)
		}
		for _, name := range names {
			for _, query := range hostileQueries() {
				if code := ask(name + query); code >= 500 && name != "/ready" {
					t.Errorf("%s: %s%.60s: answered %d", when, name, query, code)
				}
			}
		}
	}
	walk("empty")
	r.server.Store.Apply(sampleMesh())
	r.server.Store.Apply(oddMesh())
	for i := range 6 {
		r.connect(nodeOf(i), i%2 == 0)
	}
	r.settle()
	walk("at rest")
	if code := ask("/debug/config_dump?proxyID=pod-1.shop&include_eds"); code != http.StatusOK {
		t.Errorf("config_dump of a proxy that is there: answered %d", code)
	}
	if len(r.server.Store.Rejections()) == 0 {
		t.Error("no object is refused: rejectionsz was not tried")
	}
	var wg sync.WaitGroup
	wg.Go(func() { walk("while everything changes") })
	for i := range 200 {
		all := append(sampleMesh(), oddMesh()...)
		r.server.Store.Apply(all[i%len(all) : i%len(all)+1])
		r.server.Store.Apply([]ingest.Event{gone(all[(i*7)%len(all)])})
	}
	wg.Wait()
	r.settle()
}
