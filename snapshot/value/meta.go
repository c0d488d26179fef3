package value

import (
	"slices"
	"strings"
)

// Value is what pilotd makes of one configuration object. Those of a kind are pointers to one type.
type Value interface {
	// Kind is the object's kind; it is known of a nil pointer too.
	Kind() Kind
	// Object is the object's key.
	Object() ObjectKey
}

// Selecting is a value that decides something about workloads: those of its namespace that have the labels of its
// selector, or those of every namespace where it is in the root namespace. When such a value changes, the planner finds
// the facts of these workloads' classes anew.
type Selecting interface {
	Value
	// Selector returns labels that all these workloads have; none stand for all workloads. The value need not decide
	// about each workload that has them.
	Selector() Labels
}

// Meta is what every namespaced configuration object carries.
type Meta struct {
	// Cluster is as in ObjectKey.
	Cluster   string
	Namespace string
	Name      string
	// Created is the creation time in seconds since the epoch; 0 when the source gives none. Older objects win
	// conflicts.
	Created int64
}

// Older orders objects by creation time, then name, namespace and cluster: the order in which conflicts are decided.
func (m Meta) Older(o Meta) bool {
	if m.Created != o.Created {
		return m.Created < o.Created
	}
	if m.Name != o.Name {
		return m.Name < o.Name
	}
	if m.Namespace != o.Namespace {
		return m.Namespace < o.Namespace
	}
	return m.Cluster < o.Cluster
}

// Visibility says which namespaces may see an object (exportTo). The zero value is visible nowhere.
type Visibility struct {
	// Public is "*".
	Public bool
	// Own is ".", already expanded into Namespaces by the reader of the object; kept to tell "only here" from a list.
	Own bool
	// Namespaces are the explicit ones, sorted.
	Namespaces []string
}

// VisibleTo reports whether a client in namespace ns may see an object with this visibility.
func (v Visibility) VisibleTo(ns string) bool {
	return v.Public || slices.Contains(v.Namespaces, ns)
}

// NewVisibility reads an exportTo list of an object in namespace own. An empty list means def, the mesh's default list
// for that kind, and where that is empty too, "*".
func NewVisibility(exportTo, def []string, own string) Visibility {
	if len(exportTo) == 0 {
		exportTo = def
	}
	if len(exportTo) == 0 {
		return Visibility{Public: true}
	}
	var v Visibility
	for _, e := range exportTo {
		switch e {
		case "*":
			return Visibility{Public: true}
		case ".":
			v.Own = true
			v.Namespaces = append(v.Namespaces, own)
		case "~":
		default:
			v.Namespaces = append(v.Namespaces, e)
		}
	}
	slices.Sort(v.Namespaces)
	v.Namespaces = slices.Compact(v.Namespaces)
	return v
}

// Labels is a label set.
type Labels map[string]string

// Contains reports whether every pair of selector is in l. An empty selector selects everything.
func (l Labels) Contains(selector Labels) bool {
	for k, v := range selector {
		if got, ok := l[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// HostMatches reports whether host (exact) falls under pattern: equal, or "*" and "*.suffix" wildcards.
func HostMatches(pattern, host string) bool {
	if pattern == "*" || pattern == host {
		return true
	}
	if !strings.HasPrefix(pattern, "*") {
		return false
	}
	return strings.HasSuffix(host, pattern[1:]) && len(host) >= len(pattern)
}
