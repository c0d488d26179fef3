package ingest

import (
	"fmt"

	clientnet "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// admit says why an object cannot come into force, nil if it can. It looks at the object alone, so that whether an
// object is in force depends on no other. Regular expressions whose program is larger than regexSize are refused.
func admit(key value.ObjectKey, object any, regexSize int) *problem {
	if _, ok := object.(NotServed); ok {
		return nil // its source knows the kind, and nothing else of it is used
	}
	switch key.Kind {
	case value.KindNamespace, value.KindNode, value.KindMeshConfig:
	default:
		if !isLabel(key.Namespace) {
			return &problem{"metadata.namespace", fmt.Sprintf("expected a namespace, got %q", key.Namespace)}
		}
	}
	return admitKind(key.Kind, object, regexSize)
}

func admitKind(kind value.Kind, object any, regexSize int) *problem {
	switch kind {
	case value.KindNamespace:
		return typed[corev1.Namespace](object, nil)
	case value.KindNode:
		return typed[corev1.Node](object, nil)
	case value.KindPod:
		return typed(object, checkPod)
	case value.KindService:
		return typed(object, checkService)
	case value.KindEndpointSlice:
		return typed(object, checkSlice)
	case value.KindServiceEntry:
		return typed(object, checkServiceEntry)
	case value.KindWorkloadEntry:
		return typed(object, checkWorkloadEntry)
	case value.KindVirtualService:
		return typed(object, func(o *clientnet.VirtualService) *problem { return checkVirtualService(o, regexSize) })
	case value.KindDestinationRule:
		return typed(object, checkDestinationRule)
	case value.KindGateway:
		return typed(object, checkGateway)
	case value.KindSidecar:
		return typed(object, checkSidecar)
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
