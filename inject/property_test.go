package inject

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/inject/injecttest"
)

// TestAnyPod injects pods at random under settings at random. Nothing panics; a pod that can be injected comes out the
// same when it is injected once more; the patch makes of the pod what the injection says; and a template that is merged
// by itself gives what all of them would give that way.
func TestAnyPod(t *testing.T) {
	base := settings(t)
	rapid.Check(t, func(t *rapid.T) {
		s := base
		s.Values = randomValues(t)
		s.NativeSidecars = rapid.Bool().Draw(t, "native")
		s.Config.Templates = map[string]string{"custom": customTemplate}
		in, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		pod := injecttest.Pod(t)
		req := Request{Pod: pod, Namespace: "shop"}
		if rapid.Bool().Draw(t, "path") {
			req.Env = PathEnv("/inject/cluster/c1/net/n1")
		}
		once, err := in.Inject(req)
		if err != nil || once.Skipped != "" {
			return
		}
		checkPatch(t, pod, once.Pod)
		checkOverlay(t, in, req)
		req.Pod = once.Pod
		twice, err := in.Inject(req)
		if err != nil {
			t.Fatal("injected again:", err)
		}
		if d := cmp.Diff(injecttest.Map(t, once.Pod), injecttest.Map(t, twice.Pod)); d != "" {
			t.Fatalf("injected again: -once +twice\n%s", d)
		}
	})
}

// checkOverlay merges a built-in template in both ways.
func checkOverlay(t *rapid.T, in *Injector, req Request) {
	results := map[bool]map[string]any{}
	for _, one := range []bool{false, true} {
		i := &injection{Injector: in, req: req, original: req.Pod.DeepCopy()}
		i.original.Namespace = req.Namespace
		for _, step := range []func() error{i.readStatus, i.describe} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		names := i.templates()
		merge := i.overlayAll
		if one {
			merge = i.overlayOne
		}
		if len(names) != 1 || in.custom[names[0]] != nil {
			return
		}
		if err := merge(names...); err != nil {
			t.Fatal(err)
		}
		results[one] = map[string]any{"pod": injecttest.Map(t, i.pod), "alone": injecttest.Map(t, i.injected)}
	}
	if d := cmp.Diff(results[false], results[true]); d != "" {
		t.Fatalf("merged: -as several +as one\n%s", d)
	}
}

const customTemplate = `
metadata:
  annotations:
    custom.example/containers: "{{ len .Spec.Containers }}"
spec:
  containers:
  - name: extra
    image: "{{ .ProxyImage }}"
{{- range .Spec.Containers }}
{{- if ne .Name "extra" }}
  - name: {{ .Name }}
    env:
    - {name: CUSTOM, value: "{{ $.Revision }}"}
{{- end }}
{{- end }}
`

// checkPatch applies the patch as an API server does, to a pod with a field that this build does not know.
func checkPatch(t *rapid.T, before, after *corev1.Pod) {
	raw := injecttest.Map(t, before)
	raw["metadata"].(map[string]any)["fromTomorrow"] = "stays"
	text, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	ops, err := Patch(text, before, after)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(ops)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := patch.Apply(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, ops)
	}
	got := map[string]any{}
	if err := json.Unmarshal(patched, &got); err != nil {
		t.Fatal(err)
	}
	want := injecttest.Map(t, after)
	want["metadata"].(map[string]any)["fromTomorrow"] = "stays"
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("patched: -want +got\n%s", d)
	}
}

func randomValues(t *rapid.T) string {
	b := func(name string) bool { return rapid.Bool().Draw(t, name) }
	text := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	return fmt.Sprintf(`
global:
  hub: h
  tag: 1
  istioNamespace: istio-system
  pilotCertProvider: %s
  network: %q
  multiCluster: {clusterName: %q}
  mountMtlsCerts: %v
  imagePullSecrets: %s
  logging: {level: "default:info"}
  proxy: {image: proxyv2, clusterDomain: cluster.local, statusPort: 15020, holdApplicationUntilProxyStarts: %v,
          includeIPRanges: "*", startupProbe: {enabled: true}, tracer: none}
  proxy_init: {image: proxyv2}
  sds: {token: {aud: istio-ca}}
pilot: {cni: {enabled: %v, provider: %s}}
sidecarInjectorWebhook: {rewriteAppHTTPProbe: %v}
revision: ""
`, text("certs", "istiod", "none"), text("network", "", "n0"), text("cluster", "", "c0"), b("mtls"),
		text("pull", "[]", "[a, b]"), b("hold"), b("cni"), text("provider", "default", "multus"), b("rewrite"))
}
