package snapshot

import (
	"iter"
	"maps"

	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// objectIndex has the values of all configuration objects by kind, each kind by namespace, name and cluster. Immutable.
type objectIndex map[value.Kind]chunked.Map[value.Value]

// objectKey returns the key in an objectIndex. Objects of pilotd's own cluster come before those of one name in others.
func objectKey(k value.ObjectKey) string {
	if k.Cluster != "" {
		return key(k.Namespace, k.Name, k.Cluster)
	}
	return key(k.Namespace, k.Name)
}

// with returns x with the changes.
func (x objectIndex) with(changes Changes[value.ObjectKey, value.Value]) objectIndex {
	if len(changes) == 0 {
		return x
	}
	edits := map[value.Kind]editList[value.Value]{}
	for k, c := range changes {
		list := edits[k.Kind]
		list.set(objectKey(k), c.New, c.New == nil)
		edits[k.Kind] = list
	}
	next := maps.Clone(x)
	if next == nil {
		next = objectIndex{}
	}
	for kind, list := range edits {
		next[kind] = x[kind].Apply(list)
	}
	return next
}

// Object returns the value of an object, or nil.
func (s *Snapshot) Object(k value.ObjectKey) value.Value {
	v, _ := s.objects[k.Kind].Get(objectKey(k))
	return v
}

// Objects yields the values of a kind, by namespace and name.
func (s *Snapshot) Objects(kind value.Kind) iter.Seq[value.Value] { return values(s.objects[kind]) }

// Get returns the value of type V of that namespace and name in pilotd's own cluster, or nil.
func Get[V value.Value](s *Snapshot, namespace, name string) V {
	var none V
	v, _ := s.Object(value.ObjectKey{Kind: none.Kind(), Namespace: namespace, Name: name}).(V)
	return v
}

// All yields the values of type V, by namespace and name.
func All[V value.Value](s *Snapshot) iter.Seq[V] {
	var none V
	return typed[V](s.Objects(none.Kind()))
}

// In yields the values of type V in a namespace, by name.
func In[V value.Value](s *Snapshot, namespace string) iter.Seq[V] {
	var none V
	return typed[V](under(s.objects[none.Kind()], namespace))
}

func typed[V value.Value](all iter.Seq[value.Value]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for v := range all {
			if !yield(v.(V)) {
				return
			}
		}
	}
}
