package ingest

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

func metaOf(key value.ObjectKey, m metav1.ObjectMeta) value.Meta {
	return value.Meta{Cluster: key.Cluster, Namespace: m.Namespace, Name: m.Name, Created: seconds(m)}
}

// putRule takes an object that is a value by itself.
func (w *world) putRule(key value.ObjectKey, object any) {
	if object == nil {
		delete(w.rules, key)
	} else {
		w.rules[key] = object
	}
	w.marks.objects.add(key)
}

// flushObject brings the value of an object up to date.
func (w *world) flushObject(key value.ObjectKey, d *snapshot.Delta) {
	k := w.kinds[key.Kind]
	w.unresolved.begin(key)
	settle(w.published.objects, &d.Objects, key, k.value(w, key), k.equal)
}

// defaultExport is the mesh's default for objects without exportTo: of its list only "." and "*" count; without either
// it is rest.
func defaultExport(list []string, rest string) []string {
	switch {
	case len(list) == 0:
		return nil
	case slices.Contains(list, "."):
		return []string{"."}
	case slices.Contains(list, "*"):
		return []string{"*"}
	}
	return []string{rest}
}
