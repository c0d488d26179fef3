package snapshot

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// ruleIndex is all DestinationRules, and those of one namespace and host merged.
type ruleIndex struct {
	objects chunked.Map[*value.DestinationRule] // namespace, host, age
	merged  chunked.Map[*RuleSet]               // namespace, host
	about   chunked.Map[*RuleSet]               // host, namespace: the same
}

// RuleSet is the DestinationRules of one namespace for one host, merged, as three kinds of clients find them: those of
// the namespace itself, those of other namespaces, and, where it is the root namespace, its own. In each list rules
// with a workload selector come first, then general ones, each oldest first. Immutable; an unchanged set keeps its
// pointer.
type RuleSet struct {
	Host, Namespace string
	// local are those that hold in their own namespace, exported those that are for others too, private those that are
	// not.
	local, exported, private Rules
}

// Rules are those of one RuleSet that a client may be under.
type Rules []*value.DestinationRule

func (x ruleIndex) with(d *Delta) ruleIndex {
	var objects editList[*value.DestinationRule]
	affected := map[string]bool{} // keys of merged
	put := func(dr *value.DestinationRule, del bool) {
		if dr != nil {
			objects.set(key(dr.Namespace, dr.Host, age(dr.Meta)), dr, del)
			affected[key(dr.Namespace, dr.Host)] = true
		}
	}
	for _, c := range Of[*value.DestinationRule](d.Objects) {
		put(c.Old, true)
		put(c.New, false)
	}
	out := ruleIndex{objects: x.objects.Apply(objects), merged: x.merged, about: x.about}
	var merged, about editList[*RuleSet]
	for _, k := range slices.Sorted(maps.Keys(affected)) {
		set := mergeRules(slices.Collect(under(out.objects, k)))
		merged.set(k, set, set == nil)
		namespace, host, _ := strings.Cut(k, sep)
		about.set(key(host, namespace), set, set == nil)
	}
	out.merged, out.about = x.merged.Apply(merged), x.about.Apply(about)
	return out
}

// mergeRules merges the rules of one namespace and host, which come oldest first.
func mergeRules(rules []*value.DestinationRule) *RuleSet {
	if len(rules) == 0 {
		return nil
	}
	slices.SortStableFunc(rules, func(a, b *value.DestinationRule) int {
		return strings.Compare(general(a), general(b))
	})
	set, all := &RuleSet{Host: rules[0].Host, Namespace: rules[0].Namespace}, merged(rules)
	pick := func(ok func(*value.DestinationRule) bool) Rules {
		picked := slices.DeleteFunc(slices.Clone(rules), func(r *value.DestinationRule) bool { return !ok(r) })
		if len(picked) == len(rules) {
			return all // the same pointers for all who see the same
		}
		return merged(picked)
	}
	set.local = pick(func(r *value.DestinationRule) bool { return r.Export.VisibleTo(r.Namespace) })
	set.exported = pick(func(r *value.DestinationRule) bool { return !private(r) })
	set.private = pick(private)
	return set
}

// general returns "" for a rule with a workload selector, which sorts before those without.
func general(r *value.DestinationRule) string {
	if r.Selector() != nil {
		return ""
	}
	return "general"
}

// private reports whether a rule is for its own namespace alone.
func private(r *value.DestinationRule) bool {
	return !r.Export.Public && len(r.Export.Namespaces) == 1 && r.Export.Namespaces[0] == r.Namespace
}

// merged goes through rules in their order and merges each into those before it whose exportTo it has, or has more of,
// unless both have selectors and these differ. A rule that was merged last into one of its own kind is no rule of its
// own any more.
func merged(rules []*value.DestinationRule) (out Rules) {
	for _, r := range rules {
		apart := true
		for i, g := range out {
			both := g.Selector() != nil && r.Selector() != nil
			if apart = true; !covers(r, g) || both && !maps.Equal(g.Selector(), r.Selector()) {
				continue
			}
			apart = (g.Selector() != nil) != (r.Selector() != nil)
			out[i] = mergeRule(g, r)
		}
		if apart {
			out = append(out, r)
		}
	}
	return out
}

// covers reports whether the exportTo of r is that of g, as users wrote it, or more.
func covers(r, g *value.DestinationRule) bool {
	more, less := exportTo(r), exportTo(g)
	return len(less) == 0 && len(more) == 0 || len(less) > 0 &&
		!slices.ContainsFunc(less, func(e string) bool { return !slices.Contains(more, e) })
}

// exportTo returns what a rule says of its visibility; one with a selector is for its own namespace whatever it says.
func exportTo(r *value.DestinationRule) []string {
	if r.Selector() != nil {
		return []string{"."}
	}
	return r.ExportTo
}

// mergeRule returns first with the subsets of second that it lacks, and second's traffic policy where it has none.
func mergeRule(first, second *value.DestinationRule) *value.DestinationRule {
	out := *first
	out.Subsets = slices.Clone(first.Subsets)
	for _, s := range second.Subsets {
		if first.Subset(s.Name) == nil {
			out.Subsets = append(out.Subsets, s)
		}
	}
	if out.Policy == nil {
		out.Policy = second.Policy
	}
	out.From = append(slices.Clone(first.From), second.From...)
	return &out
}

// RulesFor returns the DestinationRules in force for clients in a namespace that call a service: the client's own
// namespace's first (in the root namespace, only those that are for it alone), then those that the service's namespace,
// then those that the root namespace exports to the client; in each, those of the most specific host. Which of them
// applies to a client is for its labels to say: see Select.
func (s *Snapshot) RulesFor(client string, svc *value.Service) Rules {
	root := s.Mesh.RootNamespace
	own := func(set *RuleSet) Rules { return set.local }
	if client == root {
		own = func(set *RuleSet) Rules { return set.private }
	}
	if rules := s.rulesIn(client, svc.Host, own); rules != nil {
		return rules
	}
	exported := func(set *RuleSet) Rules { return set.exported }
	for _, from := range []string{svc.Namespace, root} {
		rules := s.rulesIn(from, svc.Host, exported)
		if slices.ContainsFunc(rules, func(r *value.DestinationRule) bool { return r.Export.VisibleTo(client) }) {
			return rules
		}
	}
	return nil
}

// rulesIn returns those rules of a namespace, of the kind that list picks, that have the most specific host that covers
// host.
func (s *Snapshot) rulesIn(namespace, host string, list func(*RuleSet) Rules) Rules {
	for p := range Patterns(host) {
		if set, ok := s.rules.merged.Get(key(namespace, p)); ok {
			if rules := list(set); len(rules) > 0 {
				return rules
			}
		}
	}
	return nil
}

// RulesAbout yields the namespaces that have DestinationRules for a host or a pattern that covers it, with those rules
// that are for other namespaces too; a namespace may come more than once.
func (s *Snapshot) RulesAbout(host string) iter.Seq2[string, Rules] {
	return func(yield func(string, Rules) bool) {
		for p := range Patterns(host) {
			for set := range under(s.rules.about, p) {
				if !yield(set.Namespace, set.exported) {
					return
				}
			}
		}
	}
}

// Select returns the rule that applies to a client: of those that its namespace may see, the first whose selector
// (which only counts in the client's own namespace) has reports to be in its labels, else the last without one. nil if
// there is none.
func (r Rules) Select(client string, has func(selector value.Labels) bool) (last *value.DestinationRule) {
	for _, d := range r {
		if !d.Export.VisibleTo(client) {
			continue
		}
		switch sel := d.Selector(); {
		case sel == nil:
			last = d
		case d.Namespace == client && has(sel):
			return d
		}
	}
	return last
}

// DestinationRule returns the object of that namespace and name as the user wrote it, or nil.
func (s *Snapshot) DestinationRule(namespace, name string) *value.DestinationRule {
	return Get[*value.DestinationRule](s, namespace, name)
}
