package kube

import (
	"maps"
	"strings"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/ingest"
)

// The functions here overwrite objects that were decoded just now and belong to nobody else.

// keepMeta keeps of the metadata what names, ages and labels the object, and Istio's annotations.
func keepMeta(m *meta.ObjectMeta) {
	*m = meta.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, Labels: m.Labels, Annotations: keepAnnotations(m.Annotations),
		Generation:      m.Generation,
		ResourceVersion: m.ResourceVersion, CreationTimestamp: m.CreationTimestamp,
		DeletionTimestamp: m.DeletionTimestamp,
	}
}

func keepAnnotations(all map[string]string) map[string]string {
	maps.DeleteFunc(all, func(key, _ string) bool {
		domain, _, ok := strings.Cut(key, "/")
		return !ok || domain != "istio.io" && !strings.HasSuffix(domain, ".istio.io")
	})
	if len(all) == 0 {
		return nil
	}
	return all
}

func keepNamespace(o any) (any, *ingest.Rejection) {
	if n, ok := o.(*core.Namespace); ok {
		keepMeta(&n.ObjectMeta)
		n.Spec, n.Status = core.NamespaceSpec{}, core.NamespaceStatus{}
	}
	return o, nil
}

func keepNode(o any) (any, *ingest.Rejection) {
	if n, ok := o.(*core.Node); ok {
		keepMeta(&n.ObjectMeta)
		n.Spec, n.Status = core.NodeSpec{}, core.NodeStatus{Addresses: n.Status.Addresses}
	}
	return o, nil
}

func keepService(o any) (any, *ingest.Rejection) {
	if s, ok := o.(*core.Service); ok {
		keepMeta(&s.ObjectMeta)
		s.Status.Conditions = nil
	}
	return o, nil
}
