package cluster

import (
	networkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// kind says how to write objects of a kind.
type kind struct {
	name     string
	group    schema.GroupVersion
	resource string
	cluster  bool // not namespaced
	// frozen objects cannot be updated, so they are deleted and created again.
	frozen bool
	// status is written by a request of its own, as kubelets do.
	status bool
}

func (k kind) gvr() schema.GroupVersionResource { return k.group.WithResource(k.resource) }

// defined returns the name of the CRD that a kind needs; empty for builtin kinds.
func (k kind) defined() string {
	if k.group != networkingv1.SchemeGroupVersion {
		return ""
	}
	return k.resource + "." + k.group.Group
}

// kinds returns all kinds that are written, in the order in which they are created.
func kinds() []kind {
	core, istio := corev1.SchemeGroupVersion, networkingv1.SchemeGroupVersion
	return []kind{
		{name: "Namespace", group: core, resource: "namespaces", cluster: true},
		{name: "Node", group: core, resource: "nodes", cluster: true},
		{name: "ServiceAccount", group: core, resource: "serviceaccounts"},
		{name: "Service", group: core, resource: "services"},
		{name: "EndpointSlice", group: discoveryv1.SchemeGroupVersion, resource: "endpointslices"},
		{name: "Pod", group: core, resource: "pods", frozen: true, status: true},
		{name: "ServiceEntry", group: istio, resource: "serviceentries"},
		{name: "WorkloadEntry", group: istio, resource: "workloadentries"},
		{name: "VirtualService", group: istio, resource: "virtualservices"},
		{name: "DestinationRule", group: istio, resource: "destinationrules"},
		{name: "Gateway", group: istio, resource: "gateways"},
		{name: "Sidecar", group: istio, resource: "sidecars"},
		{name: "ConfigMap", group: core, resource: "configmaps"},
	}
}

// codecs returns encoders and decoders for all kinds.
func codecs() (serializer.CodecFactory, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, discoveryv1.AddToScheme,
		networkingv1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(scheme); err != nil {
			return serializer.CodecFactory{}, err
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme), nil
}
