package overlay

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	meshconfig "istio.io/api/mesh/v1alpha1"
)

// ProxyContainer is the name of the container that the proxy runs in.
const ProxyContainer = "istio-proxy"

// Data is what a template sees. The names of its fields are what templates written for Istio use.
type Data struct {
	// TypeMeta and DeploymentMeta say which workload the pod belongs to.
	TypeMeta       metav1.TypeMeta
	DeploymentMeta types.NamespacedName
	// ObjectMeta and Spec are the pod's, without what an earlier injection has put in.
	ObjectMeta metav1.ObjectMeta
	Spec       corev1.PodSpec
	// ProxyConfig is the one in force for this pod.
	ProxyConfig *meshconfig.ProxyConfig
	MeshConfig  *meshconfig.MeshConfig
	// Values are all of the chart's values, as a template reads them.
	Values   map[string]any
	Revision string
	// NativeSidecars says whether the proxy runs as an init container where no annotation of the pod says otherwise.
	NativeSidecars bool
	ProxyImage     string
	// ProxyUID and ProxyGID are who the proxy runs as.
	ProxyUID, ProxyGID       int64
	InboundTrafficPolicyMode string
	CompliancePolicy         string

	// Chart is what the built-in templates read of Values.
	Chart *Values
	// DefaultProxy is what agents assume where PROXY_CONFIG says nothing; fields that are equal to it are not written.
	DefaultProxy *meshconfig.ProxyConfig
}

// annotation returns an annotation of the pod, or what stands in its place.
func (d *Data) annotation(name, otherwise string) string {
	if v, ok := d.ObjectMeta.Annotations[name]; ok {
		return v
	}
	return otherwise
}

// has reports whether the pod has an annotation.
func (d *Data) has(name string) bool {
	_, ok := d.ObjectMeta.Annotations[name]
	return ok
}

// applications returns the names of the pod's containers but for the proxy's.
func (d *Data) applications() []string {
	var out []string
	for i := range d.Spec.Containers {
		if c := &d.Spec.Containers[i]; c.Name != ProxyContainer {
			out = append(out, c.Name)
		}
	}
	return out
}
