package ingest

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clientnet "istio.io/client-go/pkg/apis/networking/v1"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

func metaOf(m metav1.ObjectMeta) value.Meta {
	return value.Meta{Namespace: m.Namespace, Name: m.Name, Created: seconds(m)}
}

// putRule takes an object that is a value by itself, or with the delegates that it names.
func (w *world) putRule(key value.ObjectKey, object any) {
	for _, d := range delegatesOf(w.rules[key]) {
		w.roots.remove(d, key)
	}
	for _, d := range delegatesOf(object) {
		w.roots.add(d, key)
	}
	for root := range w.roots[key] {
		w.marks.objects.add(root)
	}
	if object == nil {
		delete(w.rules, key)
	} else {
		w.rules[key] = object
	}
	delete(w.regexSizes, key)
	if o, ok := object.(*clientnet.VirtualService); ok {
		if n := largestRegex(&o.Spec); n > 0 {
			w.regexSizes[key] = n
		}
	}
	w.marks.objects.add(key)
}

func (w *world) flushObject(key value.ObjectKey, d *snapshot.Delta) {
	switch key.Kind {
	case value.KindNamespace:
		settleObject(w, d, key, w.namespaces[key.Name])
	case value.KindVirtualService:
		w.unresolved.begin(key)
		settleObject(w, d, key, valueOf(w.rules[key], w.resolve))
	case value.KindDestinationRule:
		settleObject(w, d, key, valueOf(w.rules[key], w.destinationRule))
	case value.KindGateway:
		settleObject(w, d, key, valueOf(w.rules[key], w.gateway))
	case value.KindSidecar:
		settleObject(w, d, key, valueOf(w.rules[key], w.sidecar))
	}
}

// settleObject settles the value of an object; nil deletes it.
func settleObject[V any, P interface {
	*V
	value.Value
	Equal(P) bool
}](w *world, d *snapshot.Delta, key value.ObjectKey, next P) {
	var v value.Value
	if next != nil {
		v = next
	}
	settle(w.published.objects, &d.Objects, key, v, func(a, b value.Value) bool { return a.(P).Equal(b.(P)) })
}

// valueOf is what read makes of object, or nil of none.
func valueOf[O, V any](object any, read func(*O) *V) *V {
	if o, ok := object.(*O); ok {
		return read(o)
	}
	return nil
}

// destinationRule qualifies the host.
func (w *world) destinationRule(o *clientnet.DestinationRule) *value.DestinationRule {
	spec := clone(&o.Spec)
	spec.Host = w.qualify(spec.GetHost(), o.Namespace)
	export := value.NewVisibility(spec.GetExportTo(), defaultExport(w.mesh.Config.GetDefaultDestinationRuleExportTo(),
		"*"), o.Namespace)
	if spec.GetWorkloadSelector() != nil {
		// Whatever it says: it is for workloads of its own namespace.
		export = value.NewVisibility([]string{"."}, nil, o.Namespace)
	}
	return &value.DestinationRule{
		Meta: metaOf(o.ObjectMeta), Spec: spec, Export: export,
		From: []value.ObjectKey{{Kind: value.KindDestinationRule, Namespace: o.Namespace, Name: o.Name}},
	}
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
