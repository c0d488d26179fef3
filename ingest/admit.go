package ingest

import (
	"fmt"

	clientnet "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"

	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// admit says why an object cannot come into force, nil if it can. It looks at the object alone, so that whether an object is in force
// depends on no other.
func admit(kind value.Kind, object any) *problem {
	switch kind {
	case value.KindNamespace:
		return typed[corev1.Namespace](object, nil)
	case value.KindNode:
		return typed[corev1.Node](object, nil)
	case value.KindPod:
		return typed[corev1.Pod](object, nil)
	case value.KindService:
		return typed(object, checkService)
	case value.KindEndpointSlice:
		return typed[discovery.EndpointSlice](object, nil)
	case value.KindServiceEntry:
		return typed[clientnet.ServiceEntry](object, nil)
	case value.KindWorkloadEntry:
		return typed[clientnet.WorkloadEntry](object, nil)
	case value.KindVirtualService:
		return typed[clientnet.VirtualService](object, nil)
	case value.KindDestinationRule:
		return typed[clientnet.DestinationRule](object, nil)
	case value.KindGateway:
		return typed[clientnet.Gateway](object, nil)
	case value.KindSidecar:
		return typed[clientnet.Sidecar](object, nil)
	case value.KindMeshConfig:
		text, ok := object.(string)
		if !ok {
			return &problem{"", fmt.Sprintf("expected the text of a MeshConfig, got %T", object)}
		}
		_, p := parseMesh(text)
		return p
	}
	return &problem{"kind", fmt.Sprintf("kind %q is not read", kind)}
}

func typed[O any](object any, check func(*O) *problem) *problem {
	o, ok := object.(*O)
	if !ok || o == nil {
		return &problem{"", fmt.Sprintf("expected %T, got %T", o, object)}
	}
	if check == nil {
		return nil
	}
	return check(o)
}

func checkService(*corev1.Service) *problem { return nil }

func checkMesh(*meshconfig.MeshConfig) *problem { return nil }
