package install

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestLint checks the rendered objects, under several values, by the rules of common checkers of manifests.
func TestLint(t *testing.T) {
	for _, sets := range [][]string{nil,
		{"autoscaleMin=3", "xdsPlaintext=true", "global.networkPolicy.enabled=true"},
		{"name=pilotd", "revision=canary", "revisionTags={prod,default}", "podMonitor.enabled=true",
			"prometheusRule.enabled=true", "dashboards.enabled=true"},
		{"global.platform=openshift", "autoscaleEnabled=false", "replicaCount=2"},
	} {
		t.Run(fmt.Sprint(sets), func(t *testing.T) {
			os := render(t, "mesh", sets...)
			for _, name := range slices.Sorted(maps.Keys(os)) {
				o := os[name]
				lintMeta(t, name, o)
				switch o.GetKind() {
				case "Deployment":
					lintDeployment(t, os, as[appsv1.Deployment](t, o))
				case "ClusterRole", "Role":
					lintRole(t, name, as[rbacv1.ClusterRole](t, o))
				case "MutatingWebhookConfiguration":
					lintHooks(t, os, o)
				}
			}
		})
	}
}

// as decodes an object strictly: a field that the API does not have is an error.
func as[T any](t *testing.T, o *unstructured.Unstructured) *T {
	t.Helper()
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, out, true); err != nil {
		t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
	}
	return out
}

func lintMeta(t *testing.T, name string, o *unstructured.Unstructured) {
	if !regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`).MatchString(o.GetName()) || len(o.GetName()) > 63 {
		t.Errorf("%s: not a good name", name)
	}
	for _, label := range []string{"app", "istio.io/rev", "app.kubernetes.io/name", "app.kubernetes.io/instance",
		"app.kubernetes.io/version", "helm.sh/chart"} {
		if o.GetLabels()[label] == "" {
			t.Errorf("%s: no label %s", name, label)
		}
	}
}

func lintDeployment(t *testing.T, os objects, d *appsv1.Deployment) {
	pod := d.Spec.Template.Spec
	for k, v := range d.Spec.Selector.MatchLabels {
		if d.Spec.Template.Labels[k] != v {
			t.Errorf("the Deployment does not choose its pods by %s", k)
		}
	}
	if account := os["ServiceAccount "+pod.ServiceAccountName]; account == nil || pod.ServiceAccountName == "default" {
		t.Error("no service account of its own")
	}
	c := pod.Containers[0]
	s := c.SecurityContext
	if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation ||
		!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
		t.Errorf("the container may too much: %+v", s)
	}
	if p := pod.SecurityContext; !*p.RunAsNonRoot || p.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
		pod.HostNetwork || pod.HostPID || pod.HostIPC {
		t.Errorf("the pod may too much: %+v", p)
	}
	if c.ReadinessProbe == nil || c.LivenessProbe == nil {
		t.Error("no probes")
	}
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() ||
		c.Resources.Limits.Memory().IsZero() {
		t.Errorf("resources: %+v", c.Resources)
	}
	if strings.HasSuffix(c.Image, ":latest") || !strings.Contains(c.Image, ":") {
		t.Error("image", c.Image)
	}
	if len(pod.TopologySpreadConstraints) == 0 && pod.Affinity == nil {
		t.Error("replicas may all be on one node")
	}
	ports := map[int32]string{}
	for _, p := range c.Ports {
		ports[p.ContainerPort] = p.Name
	}
	for _, p := range as[corev1.Service](t, os["Service "+d.Name]).Spec.Ports {
		at := p.Port
		if p.TargetPort.IntVal != 0 {
			at = p.TargetPort.IntVal
		}
		if ports[at] == "" {
			t.Errorf("the Service leads to port %d, which the container does not have", at)
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			t.Errorf("variable %s has a secret", e.Name)
		}
	}
}

// lintRole finds rights that are wider than they should be without a reason.
func lintRole(t *testing.T, name string, role *rbacv1.ClusterRole) {
	for _, r := range role.Rules {
		for _, list := range [][]string{r.Verbs, r.Resources, r.APIGroups} {
			if slices.Contains(list, "*") {
				t.Errorf("%s: %v", name, r)
			}
		}
		named := len(r.ResourceNames) > 0
		// Gateways refer to Secrets and ConfigMaps in any namespace: this is the only right to read that is as wide.
		credentials := slices.Equal(r.Resources, []string{"configmaps", "secrets"}) &&
			slices.Equal(r.Verbs, []string{"get", "list", "watch"})
		secrets := slices.Contains(r.Resources, "secrets") && !credentials
		for _, v := range r.Verbs {
			reads := v == "list" || v == "watch" || v == "get" && credentials
			if secrets && v != "create" && !named || role.Kind == "ClusterRole" && !reads && v != "create" && !named ||
				slices.Contains([]string{"delete", "deletecollection", "escalate", "bind", "impersonate"}, v) {
				t.Errorf("%s: %v", name, r)
			}
		}
	}
}

// lintHooks checks which requests the webhooks make fail when pilotd is down.
func lintHooks(t *testing.T, os objects, o *unstructured.Unstructured) {
	names := map[string]bool{}
	for _, h := range hooks(t, os, o.GetName()) {
		hook := h.(map[string]any)
		name := hook["name"].(string)
		if names[name] {
			t.Errorf("%s: two webhooks %s", o.GetName(), name)
		}
		names[name] = true
		service, _, _ := unstructured.NestedString(hook, "clientConfig", "service", "name")
		if os["Service "+service] == nil {
			t.Errorf("%s asks Service %q, which is not there", name, service)
		}
		ns, _, _ := unstructured.NestedSlice(hook, "namespaceSelector", "matchExpressions")
		object, _, _ := unstructured.NestedSlice(hook, "objectSelector", "matchExpressions")
		chosen := false
		for _, e := range slices.Concat(ns, object) {
			chosen = chosen || e.(map[string]any)["operator"] == "In"
		}
		if !chosen {
			t.Errorf("%s: %s is asked about pods that nobody has labelled", o.GetName(), name)
		}
	}
}
