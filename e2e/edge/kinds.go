package edge

import (
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Kind is one kind of object.
type Kind struct {
	Name       value.Kind
	APIVersion string
	Shape      *Shape
	// Share is how many of the objects of a batch are of the kind, relative to the others'.
	Share int
}

// Kinds returns the kinds that a tenant may write, in a fixed order.
func Kinds() []Kind {
	r := newReader()
	const istio, core = "networking.istio.io/v1", "v1"
	return []Kind{
		{value.KindVirtualService, istio, r.istio(&networking.VirtualService{}), 10},
		{value.KindDestinationRule, istio, r.istio(&networking.DestinationRule{}), 10},
		{value.KindGateway, istio, r.istio(&networking.Gateway{}), 5},
		{value.KindServiceEntry, istio, r.istio(&networking.ServiceEntry{}), 6},
		{value.KindWorkloadEntry, istio, r.istio(&networking.WorkloadEntry{}), 2},
		{value.KindSidecar, istio, r.istio(&networking.Sidecar{}), 2},
		{value.KindPeerAuthentication, "security.istio.io/v1", r.istio(&security.PeerAuthentication{}), 2},
		{value.KindAuthorizationPolicy, "security.istio.io/v1", r.istio(&security.AuthorizationPolicy{}), 4},
		{value.KindRequestAuthentication, "security.istio.io/v1", r.istio(&security.RequestAuthentication{}), 2},
		{value.KindService, core, r.kubernetes(&corev1.Service{}), 4},
		{value.KindEndpointSlice, "discovery.k8s.io/v1", r.kubernetes(&discoveryv1.EndpointSlice{}), 3},
		{value.KindPod, core, r.kubernetes(&corev1.Pod{}), 3},
		{value.KindNode, core, r.kubernetes(&corev1.Node{}), 1},
		{value.KindNamespace, core, r.kubernetes(&corev1.Namespace{}), 1},
	}
}

// KindNamed returns the kind that pages call by that name, or nothing.
func KindNamed(name string) value.Kind {
	for _, k := range append(Kinds(), MeshKind()) {
		if k.Name.String() == name {
			return k.Name
		}
	}
	return ""
}

// MeshKind returns the mesh configuration, which the operator writes and no tenant. What a Maker makes of it has the
// configuration as its spec.
func MeshKind() Kind {
	s := newReader().message((&meshconfig.MeshConfig{}).ProtoReflect().Descriptor())
	return Kind{Name: value.KindMeshConfig, Shape: &Shape{Type: "object", Fields: []Field{{Name: "spec", Shape: s}}},
		Share: 1}
}
