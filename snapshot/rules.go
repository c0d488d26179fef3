package snapshot

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// ruleIndex is all DestinationRules, and those of one namespace and host merged.
type ruleIndex struct {
	all     chunked.Map[*value.DestinationRule] // namespace, name
	objects chunked.Map[*value.DestinationRule] // namespace, host, age
	merged  chunked.Map[*RuleSet]               // namespace, host
}

// RuleSet is the DestinationRules of one namespace for one host. Those with equal visibility and without a workload selector are merged into
// one; those with a selector stand each with the general one merged in below it. Immutable; an unchanged set keeps its pointer.
type RuleSet struct {
	Host  string
	rules []*value.DestinationRule // with a selector first, then general ones, each oldest first
}

// Rules are the merged rules: those with a selector first, oldest first.
func (r *RuleSet) Rules() []*value.DestinationRule {
	if r == nil {
		return nil
	}
	return r.rules
}

func (x ruleIndex) with(changes map[value.ObjectKey]*value.DestinationRule) ruleIndex {
	var all, objects editList[*value.DestinationRule]
	touched := map[string]bool{}
	for k, dr := range changes {
		if old, ok := x.all.Get(key(k.Namespace, k.Name)); ok {
			objects.remove(key(k.Namespace, old.Spec.GetHost(), age(old.Meta)))
			touched[key(k.Namespace, old.Spec.GetHost())] = true
		}
		all.set(key(k.Namespace, k.Name), dr, dr == nil)
	}
	for k, dr := range changes {
		if dr != nil {
			objects.set(key(k.Namespace, dr.Spec.GetHost(), age(dr.Meta)), dr, false)
			touched[key(k.Namespace, dr.Spec.GetHost())] = true
		}
	}
	out := ruleIndex{all: x.all.Apply(all), objects: x.objects.Apply(objects), merged: x.merged}
	var merged editList[*RuleSet]
	for _, k := range slices.Sorted(maps.Keys(touched)) {
		set := mergeRules(slices.Collect(under(out.objects, k)))
		merged.set(k, set, set == nil)
	}
	out.merged = x.merged.Apply(merged)
	return out
}

// mergeRules merges the rules of one namespace and host, which come oldest first.
func mergeRules(rules []*value.DestinationRule) *RuleSet {
	if len(rules) == 0 {
		return nil
	}
	set := &RuleSet{Host: rules[0].Spec.GetHost()}
	var general, selective []*value.DestinationRule
	for _, r := range rules {
		group := &general
		if r.Selector() != nil {
			group = &selective
		}
		*group = mergeInto(*group, r)
	}
	for _, r := range selective {
		for _, g := range general {
			if sameVisibility(r.Export, g.Export) {
				r = mergeRule(r, g)
			}
		}
		set.rules = append(set.rules, r)
	}
	set.rules = append(set.rules, general...)
	return set
}

// mergeInto merges r into the first of group with the same visibility and selector, or adds it.
func mergeInto(group []*value.DestinationRule, r *value.DestinationRule) []*value.DestinationRule {
	for i, g := range group {
		if sameVisibility(g.Export, r.Export) && maps.Equal(g.Selector(), r.Selector()) {
			group[i] = mergeRule(g, r)
			return group
		}
	}
	return append(group, r)
}

// mergeRule is first with the subsets of second that it lacks, and second's traffic policy where it has none.
func mergeRule(first, second *value.DestinationRule) *value.DestinationRule {
	spec := proto.Clone(first.Spec).(*networking.DestinationRule)
	for _, s := range second.Spec.GetSubsets() {
		if first.Subset(s.GetName()) == nil {
			spec.Subsets = append(spec.Subsets, s)
		}
	}
	if spec.TrafficPolicy == nil {
		spec.TrafficPolicy = second.Spec.GetTrafficPolicy()
	}
	out := *first
	out.Spec = spec
	out.From = append(slices.Clone(first.From), second.From...)
	return &out
}

func sameVisibility(a, b value.Visibility) bool {
	return a.Public == b.Public && slices.Equal(a.Namespaces, b.Namespaces)
}

// RulesFor is the set of DestinationRules in force for clients in a namespace that call a service: the client's own namespace first (unless
// it is the root namespace), then those that the service's namespace, then those that the root namespace exports to the client; in each,
// the most specific host. nil if there is none. Which rule of the set applies to a client is for its labels to say: see Select.
func (s *Snapshot) RulesFor(client string, svc *value.Service) *RuleSet {
	root := s.Mesh.RootNamespace()
	if client != root {
		if set := s.rulesIn(client, svc.Host, func(*value.DestinationRule) bool { return true }); set != nil {
			return set
		}
	} else if set := s.rulesIn(root, svc.Host, func(r *value.DestinationRule) bool { return r.Export.Own && !r.Export.Public }); set != nil {
		return set
	}
	exported := func(r *value.DestinationRule) bool { return r.Selector() == nil && r.Export.VisibleTo(client) }
	if set := s.rulesIn(svc.Namespace, svc.Host, exported); set != nil {
		return set
	}
	return s.rulesIn(root, svc.Host, exported)
}

// rulesIn is the most specific set of a namespace for host that has a rule which ok accepts.
func (s *Snapshot) rulesIn(namespace, host string, ok func(*value.DestinationRule) bool) *RuleSet {
	for p := range Patterns(host) {
		if set, found := s.rules.merged.Get(key(namespace, p)); found && slices.ContainsFunc(set.rules, ok) {
			return set
		}
	}
	return nil
}

// Select is the rule of the set that applies to a client: of those that its namespace may see, the first whose selector (which only counts
// in the client's own namespace) is in labels, else the first without one. nil if there is none.
func (r *RuleSet) Select(client string, labels value.Labels) *value.DestinationRule {
	for _, d := range r.Rules() {
		if !d.Export.VisibleTo(client) && d.Namespace != client {
			continue
		}
		if sel := d.Selector(); sel != nil && (d.Namespace != client || !labels.Contains(sel)) {
			continue
		}
		return d
	}
	return nil
}

// DestinationRule is the object of that namespace and name as the user wrote it, or nil.
func (s *Snapshot) DestinationRule(namespace, name string) *value.DestinationRule {
	d, _ := s.rules.all.Get(key(namespace, name))
	return d
}
