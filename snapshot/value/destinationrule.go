package value

import "slices"

// KindDestinationRule is Istio's DestinationRule.
const KindDestinationRule Kind = "DestinationRule.networking.istio.io"

// DestinationRule is a traffic policy for a host.
type DestinationRule struct {
	Meta
	DestinationPolicy
	Export Visibility
	// From names the objects that were merged into this one, oldest first; the object itself only, where none was.
	From []ObjectKey
}

// Selector returns the labels of the workloads that the rule is for; nil for all clients.
func (d *DestinationRule) Selector() Labels {
	if d == nil {
		return nil
	}
	return d.Workload
}

// Subset returns the subset of that name, or nil.
func (d *DestinationRule) Subset(name string) *Subset {
	if d == nil {
		return nil
	}
	for _, s := range d.Subsets {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// SubsetPolicy returns the policy of the subset of that name; nil if there is none.
func (d *DestinationRule) SubsetPolicy(name string) *PortPolicies {
	if s := d.Subset(name); s != nil {
		return s.Policy
	}
	return nil
}

// SubsetLabels returns the labels of the subset of that name; nil if there is none.
func (d *DestinationRule) SubsetLabels(name string) Labels {
	if s := d.Subset(name); s != nil {
		return s.Labels
	}
	return nil
}

// Kind returns KindDestinationRule.
func (d *DestinationRule) Kind() Kind { return KindDestinationRule }

// Object returns the key of the object that the rule has its name of.
func (d *DestinationRule) Object() ObjectKey { return d.Meta.Object(d.Kind()) }

// Objects returns the keys of all objects that were merged into the rule; none of no rule (nil).
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
		d.DestinationPolicy.Equal(&o.DestinationPolicy)
}
