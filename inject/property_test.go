package inject

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"istio.io/api/annotation"
	"istio.io/api/label"

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
		pod := randomPod(t)
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

// randomPod returns a pod that an API server would let in, as far as its own fields go.
func randomPod(t *rapid.T) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.APIVersion, pod.Kind, pod.Name = "v1", "Pod", "web"
	pod.Namespace = rapid.SampledFrom([]string{"", "shop"}).Draw(t, "namespace")
	pod.Annotations = randomAnnotations(t)
	pod.Labels = rapid.MapOf(rapid.SampledFrom([]string{"app", "version", label.TopologyNetwork.Name,
		label.SidecarInject.Name, label.ServiceCanonicalName.Name}),
		rapid.SampledFrom([]string{"", "a", "true", "n9"})).Draw(t, "labels")
	names := rapid.Permutation([]string{"app", "b", "c", "istio-proxy", "istio-init", "istio-validation", "extra",
		"grpc-bootstrap-init"}).Draw(t, "names")
	main := rapid.IntRange(1, 4).Draw(t, "main")
	for n, name := range names[:main+rapid.IntRange(0, 3).Draw(t, "init")] {
		c := randomContainer(t, name)
		if n < main {
			pod.Spec.Containers = append(pod.Spec.Containers, c)
			continue
		}
		if rapid.Bool().Draw(t, "always") || name == "istio-proxy" {
			c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		} else {
			c.LivenessProbe, c.ReadinessProbe, c.StartupProbe, c.Lifecycle = nil, nil, nil, nil
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	for _, v := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"v", "istio-data", "workload-socket"}),
		func(s string) string { return s }).Draw(t, "volumes") {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: v})
	}
	return pod
}

func randomContainer(t *rapid.T, name string) corev1.Container {
	c := corev1.Container{Name: name, Image: rapid.SampledFrom([]string{"auto", "mine:1"}).Draw(t, "image")}
	for _, n := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"A", "B", "ISTIO_META_NETWORK", "CA_ADDR",
		"TRUST_DOMAIN"}), 0, 3, func(s string) string { return s }).Draw(t, "env") {
		c.Env = append(c.Env, corev1.EnvVar{Name: n, Value: "user"})
	}
	for _, p := range rapid.SliceOfNDistinct(rapid.Int32Range(80, 85), 0, 2,
		func(n int32) int32 { return n }).Draw(t, "ports") {
		c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: p, Name: fmt.Sprintf("p%d", p)})
	}
	for _, p := range []**corev1.Probe{&c.LivenessProbe, &c.ReadinessProbe, &c.StartupProbe} {
		if rapid.Bool().Draw(t, "probe") {
			h := randomHandler(t)
			*p = &corev1.Probe{TimeoutSeconds: 1, ProbeHandler: corev1.ProbeHandler{HTTPGet: h.HTTPGet,
				TCPSocket: h.TCPSocket, Exec: h.Exec}}
		}
	}
	if rapid.Bool().Draw(t, "lifecycle") {
		c.Lifecycle = &corev1.Lifecycle{PreStop: randomHandler(t)}
	}
	if rapid.Bool().Draw(t, "security") {
		c.SecurityContext = &corev1.SecurityContext{RunAsUser: new(rapid.Int64Range(0, 3).Draw(t, "uid"))}
	}
	return c
}

func randomHandler(t *rapid.T) *corev1.LifecycleHandler {
	port := rapid.SampledFrom([]intstr.IntOrString{intstr.FromInt32(80), intstr.FromInt32(15020), intstr.FromInt32(0),
		intstr.FromString("p80"), intstr.FromString("none")}).Draw(t, "port")
	switch rapid.IntRange(0, 2).Draw(t, "handler") {
	case 0:
		return &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Port: port, Scheme: corev1.URISchemeHTTPS}}
	case 1:
		return &corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}}
	}
	return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}
}

// randomAnnotations returns annotations of Istio, with values of which some fit.
func randomAnnotations(t *rapid.T) map[string]string {
	var names []string
	for _, a := range annotation.AllResourceAnnotations() {
		names = append(names, a.Name)
	}
	out := rapid.MapOfN(rapid.SampledFrom(names), rapid.SampledFrom([]string{"true", "false", "TPROXY", "NONE", "*", "",
		"10.0.0.0/8", "80,81", "0", "9999", "100m", "{}", "[]", `[{"name":"u"}]`, `{"concurrency":2}`}),
		0, 4).Draw(t, "annotations")
	if rapid.Bool().Draw(t, "named") {
		out[annotation.InjectTemplates.Name] = rapid.SampledFrom([]string{"sidecar", "gateway", "grpc-agent", "grpc-simple",
			"custom", "sidecar,custom", "custom, sidecar", "grpc-simple,sidecar", "none"}).Draw(t, "templates")
	}
	for _, name := range []string{"prometheus.io/port", "prometheus.io.path", "prometheus.io/scrape"} {
		if rapid.Bool().Draw(t, name) {
			out[name] = rapid.SampledFrom([]string{"true", "false", "15020", "/m"}).Draw(t, "metrics")
		}
	}
	return out
}
