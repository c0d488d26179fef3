package value

import (
	"maps"
)

// KindNamespace is Kubernetes's Namespace.
const KindNamespace Kind = "Namespace"

// Namespace is a Kubernetes namespace.
type Namespace struct {
	Name   string
	Labels Labels
	// TrafficDistribution is the namespace's annotation, inherited by its Services; empty when absent.
	TrafficDistribution string
}

// Kind is KindNamespace.
func (n *Namespace) Kind() Kind { return KindNamespace }

// Object is the key of the namespace.
func (n *Namespace) Object() ObjectKey { return ObjectKey{Kind: n.Kind(), Name: n.Name} }

// Equal reports whether two namespaces are the same in every field.
func (n *Namespace) Equal(o *Namespace) bool {
	return n == o || n.Name == o.Name && n.TrafficDistribution == o.TrafficDistribution &&
		maps.Equal(n.Labels, o.Labels)
}
