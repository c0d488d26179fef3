package file

import (
	networking "istio.io/client-go/pkg/apis/networking/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// kind says how objects of one kind are read.
type kind struct {
	name     value.Kind
	versions []string
	// cluster says that objects of the kind have no namespace.
	cluster bool
	// lenient says that unknown fields are left out, not refused: programs write these kinds, and newer ones write more
	// fields.
	lenient bool
	// empty makes an object to decode into.
	empty func() meta.Object
}

// configMap is only a way to write a mesh configuration.
const configMap value.Kind = "ConfigMap"

// kindOf finds a kind that pilotd uses.
func kindOf(group, name string) (kind, bool) {
	var k kind
	switch group {
	case "":
		k = coreKind(value.Kind(name))
	case discovery.GroupName:
		if value.Kind(name) == value.KindEndpointSlice {
			k = kind{lenient: true, empty: func() meta.Object { return &discovery.EndpointSlice{} }}
		}
	case "networking.istio.io":
		k = istioKind(value.Kind(name))
		k.versions = []string{"v1", "v1beta1", "v1alpha3"}
	}
	k.name = value.Kind(name)
	if k.versions == nil {
		k.versions = []string{"v1"}
	}
	return k, k.empty != nil
}

func coreKind(name value.Kind) kind {
	switch name {
	case value.KindNamespace:
		return kind{cluster: true, empty: func() meta.Object { return &core.Namespace{} }}
	case value.KindNode:
		return kind{cluster: true, lenient: true, empty: func() meta.Object { return &core.Node{} }}
	case value.KindPod:
		return kind{lenient: true, empty: func() meta.Object { return &core.Pod{} }}
	case value.KindService:
		return kind{empty: func() meta.Object { return &core.Service{} }}
	case configMap:
		return kind{empty: func() meta.Object { return &core.ConfigMap{} }}
	}
	return kind{}
}

func istioKind(name value.Kind) kind {
	switch name {
	case value.KindServiceEntry:
		return kind{empty: func() meta.Object { return &networking.ServiceEntry{} }}
	case value.KindWorkloadEntry:
		return kind{empty: func() meta.Object { return &networking.WorkloadEntry{} }}
	case value.KindVirtualService:
		return kind{empty: func() meta.Object { return &networking.VirtualService{} }}
	case value.KindDestinationRule:
		return kind{empty: func() meta.Object { return &networking.DestinationRule{} }}
	case value.KindGateway:
		return kind{empty: func() meta.Object { return &networking.Gateway{} }}
	case value.KindSidecar:
		return kind{empty: func() meta.Object { return &networking.Sidecar{} }}
	}
	return kind{}
}

// spec is the protobuf message in an object of Istio's; nil in others.
func spec(o meta.Object) protoMessage {
	switch o := o.(type) {
	case *networking.ServiceEntry:
		return &o.Spec
	case *networking.WorkloadEntry:
		return &o.Spec
	case *networking.VirtualService:
		return &o.Spec
	case *networking.DestinationRule:
		return &o.Spec
	case *networking.Gateway:
		return &o.Spec
	case *networking.Sidecar:
		return &o.Spec
	}
	return nil
}
