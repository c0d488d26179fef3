package ingest

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KeepMeta clears an object's metadata, except name, age, labels and Istio's annotations. The caller must have just
// decoded the object and own it alone.
func KeepMeta(o Object) {
	if m, ok := o.(metav1.ObjectMetaAccessor); ok {
		if meta, ok := m.GetObjectMeta().(*metav1.ObjectMeta); ok {
			keepMeta(meta)
		}
	}
}

func keepMeta(m *metav1.ObjectMeta) {
	*m = metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, Labels: m.Labels, Annotations: keepAnnotations(m.Annotations),
		Generation: m.Generation, ResourceVersion: m.ResourceVersion,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
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
