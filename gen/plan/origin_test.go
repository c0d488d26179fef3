package plan

import (
	"fmt"
	"iter"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// resources yields all resources of a ResourceSet.
func resourcesOf(w *classes.ResourceSet, t *snapshot.EndpointTable) iter.Seq[*encodecache.Entry] {
	return func(yield func(*encodecache.Entry) bool) {
		for _, s := range []classes.Section{w.Sections.Of(xdstype.Cluster), w.Sections.Of(xdstype.Listener),
			w.Sections.Of(xdstype.Route)} {
			for _, e := range s.All() {
				if !yield(e) {
					return
				}
			}
		}
		for _, a := range w.Assignments.All() {
			if !yield(a.Entry(t)) {
				return
			}
		}
	}
}

// untraced says which part of a ResourceSet does not tell where it comes from, or names an object that exists does not
// know; empty if none.
func untraced(w *classes.ResourceSet, t *snapshot.EndpointTable, exists func(value.ObjectKey) bool) string {
	for e := range resourcesOf(w, t) {
		seen := map[string]bool{}
		for f := range e.Parts() {
			if len(f.Bytes()) == 0 {
				continue
			}
			if _, ok := f.Origin().(value.Origin); !ok {
				return fmt.Sprintf("%s %s has a part from %T", e.TypeURL(), e.Name(), f.Origin())
			}
			part := checked.PartOf(f)
			if e.TypeURL() != xdstype.EndpointURL && (part == "" || seen[part]) {
				return fmt.Sprintf("%s %s has no part of its own name %q", e.TypeURL(), e.Name(), part)
			}
			seen[part] = true
			for _, o := range checked.ObjectsOf(f) {
				if !exists(o) {
					return fmt.Sprintf("%s %s: %s comes from %s, which is not there", e.TypeURL(), e.Name(), part, o)
				}
			}
		}
	}
	return ""
}

// exists reports whether an object is one of the mesh.
func (m *meshMachine) exists(k value.ObjectKey) bool {
	switch k.Kind {
	case value.KindVirtualService:
		return m.state.VirtualServices[k] != nil
	case value.KindDestinationRule:
		return m.state.DestinationRules[k] != nil
	case value.KindGateway:
		return m.state.Gateways[k] != nil
	case value.KindSidecar:
		return m.state.Sidecars[k] != nil
	case value.KindMeshConfig:
		return true
	}
	return true // a class keeps its own clusters and listeners where only the object has another name
}
