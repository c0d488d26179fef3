package admission

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/inject"
	"github.com/pilotd/pilotd/inject/injecttest"
	"github.com/pilotd/pilotd/transcript"
)

// handlerOf returns a Handler with the settings that were recorded and further templates, and its Injector.
func handlerOf(t injecttest.T, templates map[string]string) (*Handler, *inject.Injector) {
	t.Helper()
	values, mesh := injecttest.Settings(t)
	in, err := inject.New(inject.Settings{Values: values, Mesh: mesh, DefaultProxy: ingest.DefaultMesh().DefaultConfig,
		Config: inject.Config{Policy: inject.PolicyEnabled, Templates: templates}})
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{Injector: func() *inject.Injector { return in }, Now: func() time.Time { return time.Time{} },
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))}), in
}

// replica returns the JSON of a pod as the API server asks about one of its workload's: with a volume of its service
// account in all its containers, and with managedFields.
func replica(t injecttest.T, of *corev1.Pod, name string, made time.Time) []byte {
	t.Helper()
	pod := of.DeepCopy()
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name})
	at := corev1.VolumeMount{Name: name, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			list[i].VolumeMounts = append(list[i].VolumeMounts, at)
		}
	}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Time: new(metav1.NewTime(made)),
		Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}}
	return encoded(t, pod)
}

func encoded(t injecttest.T, pod *corev1.Pod) []byte {
	t.Helper()
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// fresh is what injection makes of a pod by itself.
func fresh(t injecttest.T, in *inject.Injector, raw []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	pod := &corev1.Pod{}
	if err := json.Unmarshal(raw, pod); err != nil {
		t.Fatal(err)
	}
	out := &admissionv1.AdmissionResponse{}
	result, err := in.Inject(inject.Request{Pod: pod, Namespace: "shop"})
	if err != nil {
		return out
	}
	out.Allowed, out.Warnings = true, result.Warnings
	if result.Skipped == "" {
		out.PatchType = new(admissionv1.PatchTypeJSONPatch)
		if out.Patch, err = inject.Patch(raw, pod, result.Pod); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func (h *Handler) asked(t injecttest.T, raw []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	got, err := h.review(&admissionv1.AdmissionRequest{Namespace: "shop", Resource: metav1.GroupVersionResource{
		Version: "v1", Resource: "pods"}, Object: runtime.RawExtension{Raw: raw}}, "/inject")
	if err != nil {
		t.Fatal(err)
	}
	got.Result = nil // fresh has no message
	return got
}

// TestAnyReplica asks about two replicas of pods at random, with the name of the volume of the service account where it
// is one, and elsewhere. Each is answered as if it were the only one.
func TestAnyReplica(t *testing.T) {
	h, in := handlerOf(t, map[string]string{"custom": volumesTemplate})
	rapid.Check(t, func(t *rapid.T) {
		pod := injecttest.Pod(t)
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`kube-api-access-[a-z0-9]{5}`), 2, 2,
			rapid.ID).Draw(t, "names")
		where := rapid.SampledFrom([]string{"", "env", "label", "key", "annotation", "container", "second",
			"time"}).Draw(t, "where")
		for i, name := range names {
			of := pod.DeepCopy()
			misuse(of, where, name)
			raw := replica(t, of, name, time.Unix(int64(1e9+i), 0))
			before, want := testutil.ToFloat64(h.metrics.hits), fresh(t, in, raw)
			if d := cmp.Diff(want, h.asked(t, raw)); d != "" {
				t.Fatalf("replica %d: -by itself +asked\n%s", i, d)
			}
			kept := testutil.ToFloat64(h.metrics.hits) > before
			if i == 1 && where == "" && want.Patch != nil && in.BuiltinOnly(pod) && !kept {
				t.Fatal("what was made of the first replica is not kept for the second")
			}
		}
	})
}

// misuse has the name of the volume stand elsewhere.
func misuse(pod *corev1.Pod, where, name string) {
	first := &pod.Spec.Containers[0]
	switch where {
	case "env":
		first.Env = append(first.Env, corev1.EnvVar{Name: "VOLUME", Value: name})
	case "label":
		metav1.SetMetaDataLabel(&pod.ObjectMeta, "volume", name)
	case "key":
		metav1.SetMetaDataLabel(&pod.ObjectMeta, name, "volume")
	case "annotation":
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "sidecar.istio.io/userVolumeMount",
			fmt.Sprintf(`[{"name":%q,"mountPath":"/account"}]`, name))
	case "container":
		first.Name = name
	case "time":
		metav1.SetMetaDataLabel(&pod.ObjectMeta, "time", "2026-11-22T00:00:00Z")
	case "second":
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "kube-api-access-12345"})
	}
}

// TestReplaced has names and times that are what they seem, and others: what they replace could mean something.
func TestReplaced(t *testing.T) {
	for where, want := range map[string]bool{"": true, "env": false, "label": false, "key": false, "annotation": false,
		"container": false, "second": false, "time": false} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}
		misuse(pod, where, "kube-api-access-2x9fk")
		like, ok := alikeOf(replica(t, pod, "kube-api-access-2x9fk", time.Unix(1e9, 0)))
		read, err := question{}.read(like.text)
		if got := ok && err == nil && like.readAs(read); got != want {
			t.Errorf("%q: taken for a replica: %v", where, got)
		}
	}
}

// volumesTemplate reads what differs between replicas, in ways of which a name cannot be put back.
const volumesTemplate = `
metadata:
  annotations:
    custom.example/volumes: "{{ range .Spec.Volumes }}{{ .Name | sha256sum | trunc 8 }},{{ end }}"
    custom.example/made: "{{ range .ObjectMeta.ManagedFields }}{{ .Time }}{{ end }}"
`

// TestRecordedReplicas asks about two replicas of every recorded pod: the second is answered with what was made of the
// first, and as if it were the only one.
func TestRecordedReplicas(t *testing.T) {
	transcript.Each(t, "../testdata/pods/*.txtar", func(t *testing.T, archive *transcript.File) {
		pod := &corev1.Pod{}
		if err := yaml.UnmarshalStrict(archive.Files[0].Data, pod); err != nil {
			t.Fatal(err)
		}
		h, in := handlerOf(t, nil)
		for i, name := range []string{"kube-api-access-2x9fk", "kube-api-access-zzzzz"} {
			raw := replica(t, pod, name, time.Unix(int64(1e9+i), 0))
			want := fresh(t, in, raw)
			if d := cmp.Diff(want, h.asked(t, raw)); d != "" {
				t.Fatalf("replica %d: -by itself +asked\n%s", i, d)
			}
			if hits := testutil.ToFloat64(h.metrics.hits); want.Patch != nil && hits != float64(i) {
				t.Errorf("replica %d: %v are answered with what was made before", i, hits)
			}
		}
	})
}

// TestCustomTemplates has pods with a custom template injected one by one, for it may look at anything.
func TestCustomTemplates(t *testing.T) {
	h, _ := handlerOf(t, map[string]string{"custom": volumesTemplate})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"inject.istio.io/templates": "custom"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}
	raw := encoded(t, pod)
	h.asked(t, raw)
	h.asked(t, raw)
	if hits := testutil.ToFloat64(h.metrics.hits); hits != 0 {
		t.Errorf("%v pods with the template are answered with what was made before", hits)
	}
	pod.Annotations = nil
	raw = encoded(t, pod)
	h.asked(t, raw)
	h.asked(t, raw)
	if hits := testutil.ToFloat64(h.metrics.hits); hits != 1 {
		t.Errorf("%v pods without the template are answered with what was made before, expected 1", hits)
	}
}

// TestOtherSurroundings asks about one pod while what is known around it changes: each time it is injected anew.
func TestOtherSurroundings(t *testing.T) {
	h, in := handlerOf(t, nil)
	raw := replica(t, &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}},
		"kube-api-access-aaaaa", time.Unix(1e9, 0))
	annotations, native, namespace, path := map[string]string(nil), false, "shop", "/inject"
	h.options.NamespaceAnnotations = func(string) map[string]string { return annotations }
	h.options.NativeSidecars = func(string) bool { return native }
	ask := func() string {
		w := ask(t, h, path, review("pods", namespace, string(raw)))
		return string(answerOf(t, w).Patch)
	}
	seen := map[string]string{ask(): "at first"}
	for _, c := range []struct {
		name   string
		change func()
	}{
		{"annotations of the namespace", func() { annotations = map[string]string{"openshift.io/sa.scc.uid-range": "1/10"} }},
		{"native sidecars", func() { native = true }},
		{"path", func() { path = "/inject/cluster/c9" }},
		{"settings", func() {
			_, mesh := injecttest.Settings(t)
			in, _ = inject.New(inject.Settings{Mesh: mesh, DefaultProxy: mesh.DefaultConfig, Revision: "next"})
			h.options.Injector = func() *inject.Injector { return in }
		}},
	} {
		c.change()
		got := ask()
		if was, ok := seen[got]; ok {
			t.Errorf("%s: the same answer as %s", c.name, was)
		}
		seen[got] = c.name
	}
	if hits := testutil.ToFloat64(h.metrics.hits); hits != 0 {
		t.Errorf("%v are answered with what was made before", hits)
	}
	if ask(); testutil.ToFloat64(h.metrics.hits) != 1 {
		t.Error("the same is injected anew")
	}
}

// TestKeptIsBounded keeps more than there is room for: what was asked for longest ago is gone, and nothing else.
func TestKeptIsBounded(t *testing.T) {
	_, in := handlerOf(t, nil)
	a := newAnswers()
	made := func(n int) *answer {
		return &answer{key: answerKey{byte(n)}, patch: [][]byte{make([]byte, keptPatch-keptBeside)}}
	}
	const room = keptBytes / keptPatch
	for n := range room {
		a.put(in, made(n))
	}
	a.get(in, answerKey{0})
	a.put(in, made(1<<7))
	a.put(in, &answer{key: answerKey{1 << 6}, patch: [][]byte{make([]byte, keptPatch)}})
	for n, want := range map[byte]bool{0: true, 1: false, 2: true, 1 << 7: true, 1 << 6: false} {
		if got := a.get(in, answerKey{n}) != nil; got != want {
			t.Errorf("%d is kept: %v", n, got)
		}
	}
	if a.size() != keptBytes {
		t.Errorf("%v bytes are kept", a.size())
	}
	a.put(in, made(0))
	if a.size() != keptBytes || a.used.Len() != room {
		t.Errorf("the same again: %v bytes in %d answers", a.size(), a.used.Len())
	}
	_, other := handlerOf(t, nil)
	if a.get(other, answerKey{0}) != nil || a.size() != 0 {
		t.Error("what was made under other settings is kept")
	}
}

// FuzzReadReview reads any body as encoding/json would.
func FuzzReadReview(f *testing.F) {
	f.Add(review("pods", "shop", pod))
	f.Add(strings.ReplaceAll(review("pods", "shop", `{"a":"\\","b":[{"\"":1.5e3},null,true]}`), ":", " :\n"))
	f.Add(`{"request":{"object":{},"Object":{"a":1}}}`)
	f.Add(`{"request":{"object":{}},"Request":{"uid":"2"}}`)
	f.Fuzz(func(t *testing.T, body string) {
		var want admissionv1.AdmissionReview
		wrong := json.Unmarshal([]byte(body), &want)
		got, err := readReview([]byte(body))
		if wrong != nil {
			return // brackets that fit make an object, whatever stands between them
		}
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(&want, got); d != "" {
			t.Errorf("-encoding/json +readReview\n%s", d)
		}
	})
}

// BenchmarkReplica answers about another pod of a workload.
func BenchmarkReplica(b *testing.B) {
	h := newHandler(b)
	text := replica(b, &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}},
		"kube-api-access-aaaaa", time.Unix(1e9, 0))
	body := review("pods", "shop", string(text))
	b.ReportAllocs()
	for b.Loop() {
		if w := ask(b, h, "/inject", body); w.Code != http.StatusOK {
			b.Fatal(w.Body)
		}
	}
}
