package value

import (
	"slices"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

// KindDestinationRule is Istio's DestinationRule.
const KindDestinationRule Kind = "DestinationRule.networking.istio.io"

// DestinationRule is a traffic policy for a host. Spec.Host is fully qualified.
type DestinationRule struct {
	Meta
	Spec   *networking.DestinationRule
	Export Visibility
	// From names the objects that were merged into this one, oldest first; the object itself only, where none was.
	From []ObjectKey
}

// Selector are the labels of the workloads that the rule is for; nil for all clients.
func (d *DestinationRule) Selector() Labels {
	if d.Spec.GetWorkloadSelector() == nil {
		return nil
	}
	return d.Spec.GetWorkloadSelector().GetMatchLabels()
}

// Subset is the subset of that name, or nil.
func (d *DestinationRule) Subset(name string) *networking.Subset {
	if d == nil {
		return nil
	}
	for _, s := range d.Spec.GetSubsets() {
		if s.GetName() == name {
			return s
		}
	}
	return nil
}

// Kind is KindDestinationRule.
func (d *DestinationRule) Kind() Kind { return KindDestinationRule }

// Object is the key of the object that the rule has its name of.
func (d *DestinationRule) Object() ObjectKey { return d.Meta.Object(d.Kind()) }

// Objects are the keys of all objects that were merged into the rule; none of no rule (nil).
func (d *DestinationRule) Objects() []ObjectKey {
	switch {
	case d == nil:
		return nil
	case len(d.From) == 0:
		return []ObjectKey{d.Object()}
	}
	return d.From
}

// Equal reports whether two rules are the same.
func (d *DestinationRule) Equal(o *DestinationRule) bool {
	return d == o || d.Meta == o.Meta && d.Export.Equal(o.Export) && slices.Equal(d.From, o.From) &&
		proto.Equal(d.Spec, o.Spec)
}
