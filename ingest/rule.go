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
		w.marks.rules.add(root)
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
	w.marks.rules.add(key)
}

func (w *world) flushRule(key value.ObjectKey, b *snapshot.Batch) {
	p := &w.published
	switch key.Kind {
	case value.KindVirtualService:
		w.unresolved.begin(key)
		settle(p.virtual, &b.VirtualServices, key, valueOf(w.rules[key], w.resolve))
	case value.KindDestinationRule:
		settle(p.rules, &b.DestinationRules, key, valueOf(w.rules[key], w.destinationRule))
	case value.KindGateway:
		settle(p.gateways, &b.Gateways, key, valueOf(w.rules[key], w.gateway))
	case value.KindSidecar:
		settle(p.sidecars, &b.Sidecars, key, valueOf(w.rules[key], w.sidecar))
	}
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
