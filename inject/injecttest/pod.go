package injecttest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"istio.io/api/annotation"
	"istio.io/api/label"
)

// Pod returns a pod at random, such as an API server would let in, as far as its own fields go.
func Pod(t *rapid.T) *corev1.Pod {
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
	for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "mine"}), rapid.ID).Draw(t, "pull") {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	if rapid.Bool().Draw(t, "tolerates") {
		pod.Spec.Tolerations = []corev1.Toleration{{Key: "k", TolerationSeconds: new(int64(1))}}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "u"}}
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
