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

// putRule stores an object whose value depends on no other object.
func (j *joiner) putRule(key value.ObjectKey, object any) {
	if object == nil {
		delete(j.rules, key)
	} else {
		j.rules[key] = object
	}
	j.marks.objects.add(key)
}

// flushObject computes the value of an object and adds it to d if it changed.
func (j *joiner) flushObject(key value.ObjectKey, d *snapshot.Delta) {
	k := j.kinds[key.Kind]
	j.unresolved.begin(key)
	j.published.objects.put(&d.Objects, key, k.value(j, key), k.equal)
}

// defaultExport returns the mesh's default for objects without exportTo. Only "." and "*" count in its list; if it has
// neither, the default is rest.
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
