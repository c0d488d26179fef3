package ingest

import (
	"unique"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Trim is what the Store keeps of an object: a *Pod of a Pod, a *Slice of an EndpointSlice, the object itself of all others and of what is
// trimmed already. The Store does it to every object; a source that holds many before it hands them over does it first.
func Trim(object any) any {
	switch o := object.(type) {
	case *corev1.Pod:
		if o != nil {
			return newPod(o)
		}
	case *discovery.EndpointSlice:
		if o != nil {
			return newSlice(o)
		}
	}
	return object
}

// kept is next, or before where the used fields of both are equal.
func kept(before, next any) any {
	switch o := next.(type) {
	case *Pod:
		if b, ok := before.(*Pod); ok && o.equal(b) {
			return before
		}
	case *Slice:
		if b, ok := before.(*Slice); ok && o.equal(b) {
			return before
		}
	}
	return next
}

// same is s in memory that equal texts share: each object is decoded into texts of its own.
func same(s string) string { return unique.Make(s).Value() }

func sameLabels(all map[string]string) value.Labels {
	if len(all) == 0 {
		return nil
	}
	out := make(value.Labels, len(all))
	for k, v := range all {
		out[same(k)] = same(v)
	}
	return out
}
