package snapshot

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// selectedIndex finds the objects whose selector a workload satisfies without a walk over its namespace: each stands
// under one label of its selector, which such a workload has.
type selectedIndex struct {
	sidecars chunked.Map[*value.Sidecar] // namespace, "label=value" or "" for all workloads, age
	services chunked.Map[*value.Service] // namespace, "label=value" or "" for those of other registries, host
	// namespace, "label=value" or "" for all workloads, age
	authorization chunked.Map[*value.AuthorizationPolicy]
	tokens        chunked.Map[*value.RequestAuthentication] // as authorization
}

func (x selectedIndex) with(d *Delta) selectedIndex {
	var sidecars editList[*value.Sidecar]
	var services editList[*value.Service]
	for _, c := range Of[*value.Sidecar](d.Objects) {
		if old := c.Old; old != nil {
			sidecars.remove(key(old.Namespace, anyLabel(old.Selector()), age(old.Meta)))
		}
		if s := c.New; s != nil {
			sidecars.set(key(s.Namespace, anyLabel(s.Selector()), age(s.Meta)), s, false)
		}
	}
	put := func(svc *value.Service, del bool) {
		switch {
		case svc == nil:
		case svc.Registry != value.RegistryKubernetes:
			services.set(key(svc.Namespace, "", svc.Host), svc, del)
		case len(svc.Selector) > 0:
			services.set(key(svc.Namespace, anyLabel(svc.Selector), svc.Host), svc, del)
		}
	}
	for _, c := range d.Services {
		put(c.Old, true)
		put(c.New, false)
	}
	return selectedIndex{x.sidecars.Apply(sidecars), x.services.Apply(services),
		x.authorization.Apply(policyEdits[*value.AuthorizationPolicy](d)),
		x.tokens.Apply(policyEdits[*value.RequestAuthentication](d))}
}

// policy is a policy of what workloads take.
type policy interface {
	comparable
	value.Selecting
	Age() value.Meta
	// Selects reports whether the policy is for a workload with such labels, of the policy's own namespace or of another
	// one. All such workloads have the labels of its Selector.
	Selects(labels value.Labels, own bool) bool
}

// policyEdits returns the edits that d means for the policies of a kind.
func policyEdits[P policy](d *Delta) (edits editList[P]) {
	var none P
	for _, c := range Of[P](d.Objects) {
		if old := c.Old; old != none {
			edits.remove(key(old.Age().Namespace, anyLabel(old.Selector()), age(old.Age())))
		}
		if p := c.New; p != none {
			edits.set(key(p.Age().Namespace, anyLabel(p.Selector()), age(p.Age())), p, false)
		}
	}
	return edits
}

// policiesFor returns the policies of a kind for a workload: those of the root namespace first, then those of its own,
// each the oldest first.
func policiesFor[P policy](s *Snapshot, m chunked.Map[P], namespace string, labels value.Labels) (out []P) {
	for _, ns := range []string{s.Mesh.RootNamespace, namespace} {
		first := len(out)
		for _, all := range []iter.Seq[P]{under(m, key(ns, "")), selected(m, ns, labels, P.Selector)} {
			for p := range all {
				if p.Selects(labels, ns == namespace) {
					out = append(out, p)
				}
			}
		}
		slices.SortFunc(out[first:], func(a, b P) int { return value.CompareAge(a.Age(), b.Age()) })
		if namespace == s.Mesh.RootNamespace {
			break
		}
	}
	return out
}

// PoliciesFor returns what a workload with labels in a namespace asks of requests and connections.
func (s *Snapshot) PoliciesFor(namespace string, labels value.Labels) value.Policies {
	list := policiesFor(s, s.selected.authorization, namespace, labels)
	return value.Policies{
		Authorization: value.SequenceOf(list), Asked: s.asked(namespace, list),
		Tokens: value.SequenceOf(policiesFor(s, s.selected.tokens, namespace, labels)),
	}
}

// asked returns the server that policies of a workload in a namespace ask. There can be one: several could not be told
// apart where a request is for both.
func (s *Snapshot) asked(namespace string, policies []*value.AuthorizationPolicy) value.Asked {
	var names []string
	for _, p := range policies {
		if p.Action == value.CustomAction && !p.DryRun && !slices.Contains(names, p.Provider) {
			names = append(names, p.Provider)
		}
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return value.Asked{}
	case len(names) > 1:
		return value.Asked{Problem: fmt.Sprintf("the policies of a workload name several extension providers: %s",
			strings.Join(names, ", "))}
	}
	p := s.Mesh.Access.Provider(names[0])
	if p == nil {
		return value.Asked{Problem: fmt.Sprintf("the mesh has no extension provider %q that is asked for authorization",
			names[0])}
	}
	if problem := s.cannotAsk(namespace, p); problem != "" {
		return value.Asked{Problem: fmt.Sprintf("extension provider %q: %s", p.Name, problem)}
	}
	return value.Asked{Provider: p}
}

// cannotAsk says why workloads of a namespace have nothing to send to a server's service; empty if they have.
func (s *Snapshot) cannotAsk(namespace string, p *value.AuthorizationProvider) string {
	if p.Problem != "" {
		return p.Problem
	}
	var found []*value.Service
	for svc := range s.ServicesOfHost(p.Host) {
		if svc.Host == p.Host && (p.Namespace == "" || svc.Namespace == p.Namespace) {
			found = append(found, svc)
		}
	}
	switch {
	case len(found) == 0 || strings.HasPrefix(p.Host, "*"):
		return fmt.Sprintf("there is no service %s", p.Host)
	case len(found) > 1:
		return fmt.Sprintf("several namespaces have a service %s: one of them must be named", p.Host)
	case found[0].PortByNumber(p.Port) == nil:
		return fmt.Sprintf("service %s has no port %d", p.Host, p.Port)
	case !found[0].Export.VisibleTo(namespace):
		return fmt.Sprintf("service %s is not exported to namespace %s", p.Host, namespace)
	}
	return ""
}

// anyLabel returns one label of a selector, always the same; empty if it has none.
func anyLabel(selector value.Labels) string {
	if len(selector) == 0 {
		return ""
	}
	l := slices.Min(slices.Collect(maps.Keys(selector)))
	return l + "=" + selector[l]
}

// selected yields what stands under the labels of a workload and selects it.
func selected[V comparable](m chunked.Map[V], namespace string, labels value.Labels,
	selector func(V) value.Labels) iter.Seq[V] {
	return func(yield func(V) bool) {
		for k, v := range labels {
			for o := range under(m, key(namespace, k+"="+v)) {
				if labels.Contains(selector(o)) && !yield(o) {
					return
				}
			}
		}
	}
}

// SidecarsSelecting yields the Sidecars of a namespace with a selector that a workload with labels satisfies, in no
// order that means anything.
func (s *Snapshot) SidecarsSelecting(namespace string, labels value.Labels) iter.Seq[*value.Sidecar] {
	return selected(s.selected.sidecars, namespace, labels, (*value.Sidecar).Selector)
}

// SidecarsOfAll yields the Sidecars of a namespace without a selector, oldest first.
func (s *Snapshot) SidecarsOfAll(namespace string) iter.Seq[*value.Sidecar] {
	return under(s.selected.sidecars, key(namespace, ""))
}

// ServicesSelecting yields the Kubernetes Services of a namespace whose selector a pod with labels satisfies, in no
// order that means anything.
func (s *Snapshot) ServicesSelecting(namespace string, labels value.Labels) iter.Seq[*value.Service] {
	return selected(s.selected.services, namespace, labels,
		func(svc *value.Service) value.Labels { return svc.Selector })
}

// OtherServicesIn yields the services of a namespace that are no Kubernetes Services, by host.
func (s *Snapshot) OtherServicesIn(namespace string) iter.Seq[*value.Service] {
	return under(s.selected.services, key(namespace, ""))
}
