package inject

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"istio.io/api/annotation"
	"istio.io/api/label"
)

// systemNamespaces returns the namespaces that are never injected: what runs there is what clusters need before they
// have a mesh.
func systemNamespaces() []string {
	return []string{"kube-system", "kube-public", "kube-node-lease", "local-path-storage"}
}

// decide says why a pod is not injected; an empty reason means that it is.
func (in *Injector) decide(pod *corev1.Pod) (warnings []string, reason string) {
	if pod.Spec.HostNetwork {
		return nil, "it uses the network of its host"
	}
	if slices.Contains(systemNamespaces(), pod.Namespace) {
		return nil, "namespace " + pod.Namespace + " is the cluster's own"
	}
	what, name := "annotation", annotation.SidecarInject.Name
	asked, ok := pod.Annotations[name]
	if l, labelled := pod.Labels[label.SidecarInject.Name]; labelled {
		what, asked, ok = "label", l, true
	}
	if ok && asked != "" {
		yes, known := yamlBool(asked)
		if !known {
			warnings = append(
				warnings,
				fmt.Sprintf("%s %s=%q: expected true or false; the pod is not injected", what, name, asked),
			)
		}
		if !yes {
			return warnings, fmt.Sprintf("its %s %s is %q", what, name, asked)
		}
		return nil, ""
	}
	of := labels.Set(pod.Labels)
	for _, s := range in.never {
		if s.Matches(of) {
			return nil, "neverInjectSelector " + s.String() + " matches its labels"
		}
	}
	for _, s := range in.always {
		if s.Matches(of) {
			return nil, ""
		}
	}
	if in.settings.Config.Policy == PolicyDisabled {
		return nil, "the injector's policy is disabled"
	}
	return nil, ""
}

// yamlBool reads a boolean as YAML 1.1 does, whatever the case.
func yamlBool(text string) (yes, known bool) {
	switch strings.ToLower(text) {
	case "true", "yes", "y", "on":
		return true, true
	case "false", "no", "n", "off":
		return false, true
	}
	return false, false
}
