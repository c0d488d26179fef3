package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/inject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"web-","labels":{"app":"web"}},
"spec":{"containers":[{"name":"app","image":"a","fromTomorrow":1}]}}`

func newHandler(t testing.TB) *Handler {
	t.Helper()
	mesh, err := ingest.ParseMesh("")
	if err != nil {
		t.Fatal(err)
	}
	in, err := inject.New(inject.Settings{Mesh: mesh, DefaultProxy: mesh.DefaultConfig})
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{Injector: func() *inject.Injector { return in },
		NamespaceAnnotations: func(ns string) map[string]string {
			if ns == "openshift" {
				return map[string]string{"openshift.io/sa.scc.uid-range": "1000/100"}
			}
			return nil
		},
		Now: func() time.Time { return time.Time{} }, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
}

// review returns an AdmissionReview about a pod.
func review(resource, namespace, object string) string {
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1",
"resource":{"group":"","version":"v1","resource":%q},"namespace":%q,"operation":"CREATE","object":%s}}`,
		resource, namespace, object)
}

func ask(t testing.TB, h http.Handler, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func answerOf(t testing.TB, w *httptest.ResponseRecorder) *admissionv1.AdmissionResponse {
	t.Helper()
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %v\n%s", w.Code, err, w.Body)
	}
	if review.APIVersion != "admission.k8s.io/v1" || review.Kind != "AdmissionReview" || review.Response.UID != "u1" {
		t.Fatalf("unexpected answer %s", w.Body)
	}
	return review.Response
}

// TestPatch applies the patch of an answer to the pod of the request.
func TestPatch(t *testing.T) {
	h := newHandler(t)
	got := answerOf(t, ask(t, h, "/inject/cluster/c1/net/n1", review("pods", "openshift", pod)))
	if !got.Allowed || got.PatchType == nil || *got.PatchType != admissionv1.PatchTypeJSONPatch {
		t.Fatalf("%+v", got)
	}
	patch, err := jsonpatch.DecodePatch(got.Patch)
	if err != nil {
		t.Fatal(err)
	}
	text, err := patch.Apply([]byte(pod))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"fromTomorrow":1`, `"topology.istio.io/network":"n1"`,
		`{"name":"ISTIO_META_CLUSTER_ID","value":"c1"}`, `"runAsUser":1099`, `"-u","1099"`} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("want %s in\n%s", want, text)
		}
	}
	if bytes.Contains(text, []byte(`"namespace":"openshift"`)) {
		t.Error("the patch sets a namespace, which is the API server's to set")
	}
	injected := &corev1.Pod{}
	if err := json.Unmarshal(text, injected); err != nil {
		t.Fatal(err)
	}
	again := answerOf(t, ask(t, h, "/inject/cluster/c1/net/n1", review("pods", "openshift", string(text))))
	if string(again.Patch) != "[]" {
		t.Errorf("injected again: %s", again.Patch)
	}
	if n := testutil.ToFloat64(h.metrics.successes); n != 2 {
		t.Errorf("successes: %v", n)
	}
}

// TestLetIn has objects that come in as they are.
func TestLetIn(t *testing.T) {
	h := newHandler(t)
	off := strings.Replace(pod, `"app":"web"`, `"sidecar.istio.io/inject":"false"`, 1)
	odd := strings.Replace(pod, `"app":"web"`, `"sidecar.istio.io/inject":"nope"`, 1)
	for name, body := range map[string]string{"off": review("pods", "shop", off), "odd": review("pods", "shop", odd),
		"system": review("pods", "kube-system", pod), "no pod": review("services", "shop", `{}`)} {
		got := answerOf(t, ask(t, h, "/inject", body))
		if !got.Allowed || got.Patch != nil || (len(got.Warnings) > 0) != (name == "odd") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestRefused has pods that cannot be injected; the message is for who creates them.
func TestRefused(t *testing.T) {
	h := newHandler(t)
	bad := strings.Replace(pod, `"labels"`, `"annotations":{"status.sidecar.istio.io/port":"x"},"labels"`, 1)
	got := answerOf(t, ask(t, h, "/inject", review("pods", "shop", bad)))
	const want = `pod shop/web-… cannot be injected: annotation status.sidecar.istio.io/port="x": ` +
		`expected a port number, 0 to 65535`
	if got.Allowed || got.Result.Message != want {
		t.Errorf("%+v", got.Result)
	}
	got = answerOf(t, ask(t, h, "/inject", review("pods", "shop", `{"spec":7}`)))
	if got.Allowed || !strings.Contains(got.Result.Message, "expected a pod") {
		t.Errorf("%+v", got.Result)
	}
}

// TestBadRequests are answered with a code and one line.
func TestBadRequests(t *testing.T) {
	h := newHandler(t)
	for _, c := range []struct {
		name, method, kind, body string
		code                     int
		want                     string
	}{
		{"method", "GET", "application/json", "", 405, "expected POST"},
		{"type", "POST", "text/plain", "{}", 415, "application/json"},
		{"no JSON", "POST", "application/json", "nope", 400, "expected an AdmissionReview"},
		{"version", "POST", "application/json", `{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}`, 400,
			"AdmissionReview of admission.k8s.io/v1"},
		{"no request", "POST", "application/json", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, 400,
			"with a request"},
		{"size", "POST", "application/json", strings.Repeat(" ", MaxBody+1), 413, "at most 4194304 bytes"},
	} {
		r := httptest.NewRequest(c.method, "/inject", strings.NewReader(c.body))
		r.Header.Set("Content-Type", c.kind)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: %d %s", c.name, w.Code, w.Body)
		}
	}
	h.options.Injector = func() *inject.Injector { return nil }
	if w := ask(t, h, "/inject", review("pods", "shop", pod)); w.Code != 503 {
		t.Errorf("without settings: %d %s", w.Code, w.Body)
	}
}

// TestRequestsWait has more requests of one sort than places: the last waits until one is free, or until its client
// has gone, and requests of the other sort are answered meanwhile.
func TestRequestsWait(t *testing.T) {
	for name, c := range map[string]struct {
		length, other int64
		places        int
	}{"large": {-1, 1000, largeBodies}, "small": {1000, -1, smallBodies}} {
		t.Run(name, func(t *testing.T) {
			h := newHandler(t)
			var all sync.WaitGroup
			var writers []*io.PipeWriter
			reading := make(chan struct{}, c.places+1)
			begin := func(ctx context.Context) {
				r, w := io.Pipe()
				writers = append(writers, w)
				all.Go(func() {
					req := request(&announced{r, reading}, c.length).WithContext(ctx)
					h.ServeHTTP(httptest.NewRecorder(), req)
				})
			}
			for range c.places {
				begin(t.Context())
			}
			for range c.places {
				<-reading
			}
			begin(t.Context())
			w := httptest.NewRecorder()
			h.ServeHTTP(w, request(strings.NewReader(review("pods", "shop", pod)), c.other))
			if got := answerOf(t, w); !got.Allowed {
				t.Errorf("%+v", got)
			}
			gone, leave := context.WithCancel(t.Context())
			leave()
			w = httptest.NewRecorder()
			if h.ServeHTTP(w, request(strings.NewReader("{}"), c.length).WithContext(gone)); w.Code != 503 {
				t.Errorf("a client that has gone is answered %d", w.Code)
			}
			select {
			case <-reading:
				t.Error("more requests than places are read")
			default:
			}
			for _, w := range writers {
				w.Close()
			}
			<-reading
			all.Wait()
		})
	}
}

// request returns one whose Content-Length is length, whatever its body has.
func request(body io.Reader, length int64) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/inject", body)
	r.Header.Set("Content-Type", "application/json")
	r.ContentLength = length
	return r
}

// announced tells of the first time that it is read.
type announced struct {
	*io.PipeReader
	first chan struct{}
}

func (a *announced) Read(p []byte) (int, error) {
	if a.first != nil {
		a.first <- struct{}{}
		a.first = nil
	}
	return a.PipeReader.Read(p)
}

// FuzzHandler has any body answered: with an AdmissionReview or an error, never a panic.
func FuzzHandler(f *testing.F) {
	f.Add("/inject/cluster/c", review("pods", "shop", pod))
	f.Add("/", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}`)
	h := newHandler(f)
	f.Fuzz(func(t *testing.T, path, body string) {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.URL.Path = path
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code == http.StatusOK && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s", w.Body)
		}
	})
}

// BenchmarkReview answers AdmissionReviews about pods of which no two are alike: decoding, injection, patch.
func BenchmarkReview(b *testing.B) {
	h := newHandler(b)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		of := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: fmt.Sprint("app-", n)}}}}
		body := review("pods", "shop", string(replica(b, of, "kube-api-access-aaaaa", time.Unix(1e9, 0))))
		if w := ask(b, h, "/inject", body); w.Code != http.StatusOK {
			b.Fatal(w.Body)
		}
	}
}
