package value

import (
	"maps"
)

// KindNamespace is Kubernetes's Namespace.
const KindNamespace Kind = "Namespace"

// Namespace is a Kubernetes namespace.
type Namespace struct {
	// Cluster is as in ObjectKey.
	Cluster string
	Name    string
	Labels  Labels
	// TrafficDistribution is the namespace's annotation, inherited by its Services; empty when absent.
	TrafficDistribution string
}

// Kind returns KindNamespace.
func (n *Namespace) Kind() Kind { return KindNamespace }

// Object returns the key of the namespace.
func (n *Namespace) Object() ObjectKey {
	return ObjectKey{Cluster: n.Cluster, Kind: n.Kind(), Name: n.Name}
}

// Equal reports whether two namespaces are the same in every field.
func (n *Namespace) Equal(o *Namespace) bool {
	return n == o || n.Cluster == o.Cluster && n.Name == o.Name && n.TrafficDistribution == o.TrafficDistribution &&
		maps.Equal(n.Labels, o.Labels)
}
