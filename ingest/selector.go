package ingest

import (
	"iter"

	"github.com/pilotd/pilotd/snapshot/value"
)

// selectors finds the selectors that match a set of labels without trying all of them: each is indexed under only one
// of its labels.
type selectors map[labelPair]map[value.ObjectKey]value.Labels

// labelPair is one label in one namespace of a cluster. An empty label is for the empty selector, which matches
// everything in the namespace.
type labelPair struct {
	space
	label, value string
}

// pairOf returns the pair under which a selector is indexed: its smallest label.
func pairOf(namespace space, selector value.Labels) labelPair {
	p := labelPair{space: namespace}
	for k, v := range selector {
		if p.label == "" || k < p.label {
			p.label, p.value = k, v
		}
	}
	return p
}

func (s selectors) add(owner value.ObjectKey, selector value.Labels) {
	p := pairOf(nameOf(owner).space, selector)
	if s[p] == nil {
		s[p] = map[value.ObjectKey]value.Labels{}
	}
	s[p][owner] = selector
}

func (s selectors) remove(owner value.ObjectKey, selector value.Labels) {
	p := pairOf(nameOf(owner).space, selector)
	if delete(s[p], owner); len(s[p]) == 0 {
		delete(s, p)
	}
}

// matching yields the owners of those selectors in namespace that match labels.
func (s selectors) matching(namespace space, labels value.Labels) iter.Seq[value.ObjectKey] {
	return func(yield func(value.ObjectKey) bool) {
		for owner := range s[labelPair{space: namespace}] {
			if !yield(owner) {
				return
			}
		}
		for k, v := range labels {
			for owner, selector := range s[labelPair{namespace, k, v}] {
				if labels.Contains(selector) && !yield(owner) {
					return
				}
			}
		}
	}
}
