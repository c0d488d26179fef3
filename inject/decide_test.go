package inject

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networking "istio.io/api/networking/v1beta1"
	typev1beta1 "istio.io/api/type/v1beta1"
)

func plainPod() *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace, pod.Labels = "web", "shop", map[string]string{"app": "web"}
	pod.Annotations = map[string]string{}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "a"}}
	return pod
}

// TestWhichPods has what decides whether a pod is injected, the stronger reasons first.
func TestWhichPods(t *testing.T) {
	config := Config{NeverInjectSelector: []metav1.LabelSelector{{MatchLabels: map[string]string{"never": "1"}}},
		AlwaysInjectSelector: []metav1.LabelSelector{{MatchLabels: map[string]string{"always": "1"}}, {}}}
	for _, c := range []struct {
		name, policy string
		change       func(*corev1.Pod)
		want         string // of the reason; empty: injected
	}{
		{"says nothing", "", func(*corev1.Pod) {}, ""},
		{"disabled", PolicyDisabled, func(*corev1.Pod) {}, "policy is disabled"},
		{"host network", "", func(p *corev1.Pod) {
			p.Spec.HostNetwork, p.Labels["sidecar.istio.io/inject"] = true, "true"
		}, "network of its host"},
		{"system", "", func(p *corev1.Pod) { p.Namespace, p.Labels["always"] = "kube-system", "1" }, "the cluster's own"},
		{"label", PolicyDisabled, func(p *corev1.Pod) { p.Labels["sidecar.istio.io/inject"] = "true" }, ""},
		{"annotation", PolicyDisabled, func(p *corev1.Pod) { p.Annotations["sidecar.istio.io/inject"] = "yes" }, ""},
		{"label over annotation", "", func(p *corev1.Pod) {
			p.Labels["sidecar.istio.io/inject"], p.Annotations["sidecar.istio.io/inject"] = "false", "true"
		}, `label sidecar.istio.io/inject is "false"`},
		{"never", "", func(p *corev1.Pod) { p.Labels["never"], p.Labels["always"] = "1", "1" }, "never=1"},
		{"always", PolicyDisabled, func(p *corev1.Pod) { p.Labels["always"] = "1" }, ""},
		{"label over never", "", func(p *corev1.Pod) {
			p.Labels["never"], p.Labels["sidecar.istio.io/inject"] = "1", "true"
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := settings(t)
			s.Config = config
			s.Config.Policy = c.policy
			pod := plainPod()
			c.change(pod)
			got, err := newInjector(t, s).Inject(Request{Pod: pod})
			if err != nil {
				t.Fatal(err)
			}
			if (c.want == "") != (got.Skipped == "") || !strings.Contains(got.Skipped, c.want) {
				t.Errorf("skipped: %q, want %q", got.Skipped, c.want)
			}
			if (got.Skipped != "") != (got.Pod == pod) {
				t.Error("a pod that is skipped comes back as it is, and no other")
			}
		})
	}
}

// TestRefusedAnnotations has one value for each annotation that cannot be used, and what the error says.
func TestRefusedAnnotations(t *testing.T) {
	in := newInjector(t, settings(t))
	for name, c := range map[string]struct{ value, want string }{
		"sidecar.istio.io/interceptionMode":                     {"redirect", "expected REDIRECT, TPROXY or NONE"},
		"traffic.sidecar.istio.io/includeOutboundIPRanges":      {"10.0.0.0/8, 11.0.0.0/8", `got " 11.0.0.0/8"`},
		"traffic.sidecar.istio.io/excludeOutboundIPRanges":      {"*", "expected IP ranges"},
		"traffic.sidecar.istio.io/includeInboundPorts":          {"80,x", `expected port numbers with commas between, got "x"`},
		"traffic.sidecar.istio.io/excludeInboundPorts":          {"70000", "expected port numbers"},
		"traffic.sidecar.istio.io/excludeOutboundPorts":         {"80,,81", "expected port numbers"},
		"traffic.sidecar.istio.io/includeOutboundPorts":         {"-1", "expected port numbers"},
		"status.sidecar.istio.io/port":                          {"http", "expected a port number"},
		"readiness.status.sidecar.istio.io/initialDelaySeconds": {"1s", "expected a number"},
		"readiness.status.sidecar.istio.io/periodSeconds":       {"-1", "expected a number"},
		"readiness.status.sidecar.istio.io/failureThreshold":    {"99999999999", "expected a number"},
		"sidecar.istio.io/proxyCPU":                             {"lots", "expected a quantity"},
		"sidecar.istio.io/proxyMemory":                          {"", "expected a quantity"},
		"prometheus.istio.io/merge-metrics":                     {"", "expected true or false"},
		"sidecar.istio.io/proxyMemoryLimit":                     {"-1Gi", "expected a quantity"},
		"sidecar.istio.io/userVolume":                           {"[", "expected a JSON list or object"},
		"sidecar.istio.io/userVolumeMount":                      {"", "expected a JSON list or object"},
		"proxy.istio.io/config":                                 {"concurency: 1", `unknown field "concurency"`},
		"proxy.istio.io/overrides":                              {"{", "that an injection has written"},
		"sidecar.istio.io/status":                               {"injected", "that an injection has written"},
		"inject.istio.io/templates":                             {"sidecar,nope", `there is no template "nope"; there are gateway, grpc-agent`},
	} {
		pod := plainPod()
		pod.Annotations[name] = c.value
		_, err := in.Inject(Request{Pod: pod})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s=%q: got %v, want %q", name, c.value, err, c.want)
		}
		if err != nil && name != "inject.istio.io/templates" && !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
}

// TestWarnings has settings without effect: the pod is injected, and whoever made it is told.
func TestWarnings(t *testing.T) {
	in := newInjector(t, settings(t))
	for name, c := range map[string]struct{ value, want string }{
		"sidecar.istio.io/proxyCPUs":                         {"1", "annotation sidecar.istio.io/proxyCPUs is unknown"},
		"proxy.istio.io/Config":                              {"{}", "annotation proxy.istio.io/Config is unknown"},
		"sidecar.istio.io/rewriteAppHTTPProbers":             {"nope", "expected true or false"},
		"sidecar.istio.io/nativeSidecar":                     {"no", "expected true or false; the proxy is a native sidecar"},
		"sidecar.istio.io/capNetBindService":                 {"1", "expected true or false; it counts as false"},
		"readiness.status.sidecar.istio.io/applicationPorts": {"x", "has no effect"},
	} {
		pod := plainPod()
		pod.Annotations[name] = c.value
		got, err := in.Inject(Request{Pod: pod})
		if err != nil || got.Skipped != "" || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], c.want) {
			t.Errorf("%s: %v %q, want %q", name, err, got.Warnings, c.want)
		}
	}
}

// TestSeveralTemplates merges several templates; one that cannot be used is an error that names it, and a field that no
// pod has is a warning.
func TestSeveralTemplates(t *testing.T) {
	s := settings(t)
	s.Config.Templates = map[string]string{"typo": "spec: {contaners: []}", "list": "- 1",
		"merge": "spec: {containers: [{image: x}]}", "label": "metadata: {labels: {more: here}}"}
	s.Config.Aliases = map[string][]string{"both": {"typo", "label"}}
	in := newInjector(t, s)
	for names, want := range map[string]string{
		"sidecar, both": "", "both,sidecar": "", "sidecar,list": "template list does not write an object",
		"sidecar,merge": "template merge cannot be merged", "merge,label": "template merge cannot be merged",
		"sidecar,": `there is no template ""; there are gateway, grpc-agent, grpc-simple, label, list, merge, sidecar, typo`,
	} {
		pod := plainPod()
		pod.Annotations["inject.istio.io/templates"] = names
		got, err := in.Inject(Request{Pod: pod})
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", names, err, want)
			}
			continue
		}
		const warning = `template typo: unknown field "spec.contaners": it has no effect`
		if err != nil || got.Pod.Labels["more"] != "here" || proxyOf(got.Pod) == nil || len(got.Warnings) != 1 ||
			got.Warnings[0] != warning {
			t.Errorf("%s: %v %q", names, err, got.Warnings)
		}
	}
}

// TestSettingsRefused has settings that cannot be read.
func TestSettingsRefused(t *testing.T) {
	for _, c := range []struct {
		change func(*Settings)
		want   string
	}{
		{func(s *Settings) { s.Values = "- 1" }, "values: expected an object"},
		{func(s *Settings) { s.Values = "global: {proxy: {privileged: 3}}" }, "values: "},
		{func(s *Settings) { s.Config.Templates = map[string]string{"t": "{{"} }, "injector's config: templates: template: t"},
		{func(s *Settings) {
			s.Config.NeverInjectSelector = []metav1.LabelSelector{{MatchLabels: map[string]string{"/": ""}}}
		}, "neverInjectSelector[0]"},
	} {
		s := settings(t)
		c.change(&s)
		if _, err := New(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	if _, err := ReadConfig("policy: sometimes"); err == nil || !strings.Contains(err.Error(), `got "sometimes"`) {
		t.Errorf("got %v", err)
	}
	if c, err := ReadConfig(""); err != nil || c.Policy != PolicyEnabled {
		t.Errorf("%+v %v", c, err)
	}
}

// TestOwner tells workloads from what pods say of their controllers.
func TestOwner(t *testing.T) {
	for _, c := range []struct {
		kind, version, owner string
		labels               map[string]string
		want                 string
	}{
		{"ReplicaSet", "apps/v1", "web-5d8f", map[string]string{"pod-template-hash": "5d8f"}, "apps/v1 Deployment web"},
		{"ReplicaSet", "apps/v1", "web", nil, "apps/v1 ReplicaSet web"},
		{"ReplicaSet", "apps/v1", "web-77", map[string]string{"rollouts-pod-template-hash": "77"}, "v1alpha1 Rollout web"},
		{"StatefulSet", "apps/v1", "db", nil, "apps/v1 StatefulSet db"},
		{"Job", "batch/v1", "nightly-28912345", nil, "batch/v1 CronJob nightly"},
		{"Job", "batch/v1", "once-1234567", nil, "batch/v1 Job once-1234567"},
		{"ReplicationController", "v1", "web-1", map[string]string{"deploymentconfig": "web"}, "v1 DeploymentConfig web"},
	} {
		pod := plainPod()
		pod.Name, pod.GenerateName, pod.Labels = "", c.owner+"-", c.labels
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Other", Name: "o"},
			{Kind: c.kind, APIVersion: c.version, Name: c.owner, Controller: new(true)}}
		w := ownerOf(pod)
		if got := w.Type.APIVersion + " " + w.Type.Kind + " " + w.Name.Name; got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.kind, c.owner, got, c.want)
		}
		pod.GenerateName, pod.Name = "", "mine"
		if w := ownerOf(pod); w.Type.Kind != "Pod" || w.Name.Name != "mine" {
			t.Errorf("a pod with a name of its own: %+v", w)
		}
	}
}

// TestProxyConfigObjects lays objects over the mesh's ProxyConfig: the mesh's, the namespace's, the workload's, then
// the annotation.
func TestProxyConfigObjects(t *testing.T) {
	object := func(ns, name string, concurrency int32, selector map[string]string) ProxyConfig {
		spec := &networking.ProxyConfig{Concurrency: wrapperspb.Int32(concurrency),
			EnvironmentVariables: map[string]string{"FROM": name, name: "1"}}
		if selector != nil {
			spec.Selector = &typev1beta1.WorkloadSelector{MatchLabels: selector}
		}
		return ProxyConfig{Namespace: ns, Name: name, Created: time.Unix(int64(concurrency), 0), Spec: spec}
	}
	s := settings(t)
	s.ProxyConfigs = []ProxyConfig{
		object("shop", "WORKLOAD_NEW", 9, map[string]string{"app": "web"}),
		object("shop", "WORKLOAD", 3, map[string]string{"app": "web"}),
		object("shop", "OTHER", 8, map[string]string{"app": "other"}),
		object("shop", "NAMESPACE", 2, nil), object("istio-system", "MESH", 1, nil),
		object("elsewhere", "ELSEWHERE", 7, nil),
	}
	in, pod := newInjector(t, s), plainPod()
	check := func(concurrency int32, from string, keys ...string) {
		t.Helper()
		got, err := in.proxyConfig(pod)
		if err != nil {
			t.Fatal(err)
		}
		if got.GetConcurrency().GetValue() != concurrency || got.ProxyMetadata["FROM"] != from ||
			len(got.ProxyMetadata) != len(keys)+1 {
			t.Errorf("got %v", got)
		}
		for _, k := range keys {
			if got.ProxyMetadata[k] == "" {
				t.Errorf("want %s in %v", k, got.ProxyMetadata)
			}
		}
	}
	check(3, "WORKLOAD", "WORKLOAD", "NAMESPACE", "MESH")
	pod.Annotations["proxy.istio.io/config"] = "concurrency: 5\nproxyMetadata: {FROM: pod}\nstatusPort: 0"
	check(5, "pod", "WORKLOAD", "NAMESPACE", "MESH")
	if got, err := in.proxyConfig(pod); err != nil || got.StatusPort != 0 || got.DiscoveryAddress == "" {
		t.Errorf("a field that the annotation names is what it says, others stay: %v %v", got, err)
	}
	pod.Annotations, pod.Namespace = nil, "third"
	check(1, "MESH", "MESH")
	if in.settings.Mesh.DefaultConfig.ProxyMetadata != nil {
		t.Error("the mesh's configuration was changed")
	}
}

// TestPathEnv reads the end of webhooks' paths.
func TestPathEnv(t *testing.T) {
	for path, want := range map[string]string{"": "", "/inject": "", "/inject/": "", "/inject/cluster": "",
		"/inject/cluster/c1/net/n1": "ISTIO_META_CLUSTER_ID=c1 ISTIO_META_NETWORK=n1",
		"/inject/net/a--slash--b/":  "ISTIO_META_NETWORK=a/b", "/inject/my_var/x/odd": "MY_VAR=x",
		"/inject/:ENV:cluster=c1:ENV:net=:ENV:=x:ENV:odd": "ISTIO_META_CLUSTER_ID=c1 ISTIO_META_NETWORK="} {
		var got []string
		for _, k := range []string{"ISTIO_META_CLUSTER_ID", "ISTIO_META_NETWORK", "MY_VAR", "ODD"} {
			if v, ok := PathEnv(path)[k]; ok {
				got = append(got, k+"="+v)
			}
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%s: got %q, want %q", path, g, want)
		}
	}
}
