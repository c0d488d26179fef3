package value

import (
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
)

// VirtualService is a routing object, with the routes of delegates in place of those that name them, and nothing that
// validation refuses.
type VirtualService struct {
	Meta
	Routing
	Export Visibility
	// Delegates are the VirtualServices from which some of the routes come.
	Delegates []ObjectKey
	// RegexSize is the number of instructions of the largest RE2 program of all regular expressions of the object and
	// its Delegates; 0 where they have none. Not all of them need be in Routing.
	RegexSize int
}

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

// Gateway is an Istio Gateway. Server hosts are "namespace/host" with namespace "*" or a name ("." resolved).
type Gateway struct {
	Meta
	Spec *networking.Gateway
}

// Sidecar is a Sidecar object. Egress hosts are "namespace/host" as users write them: "." is the namespace of the
// client, for that of the root namespace holds in all.
type Sidecar struct {
	Meta
	Spec *networking.Sidecar
}

// Selector are the labels of the workloads that the Sidecar is for; nil for the whole namespace.
func (s *Sidecar) Selector() Labels { return s.Spec.GetWorkloadSelector().GetLabels() }

// Mesh is the mesh-wide configuration: MeshConfig with all defaults applied, and the process's own settings that
// generators read.
type Mesh struct {
	Config *meshconfig.MeshConfig
	// Retries are those of routes that say nothing of them; nil for the usual ones.
	Retries *Retries
	// DomainSuffix is the cluster's DNS domain, "cluster.local".
	DomainSuffix string
	// ClusterID names this cluster, "Kubernetes".
	ClusterID string
}

// RootNamespace is where mesh-wide objects live.
func (m *Mesh) RootNamespace() string { return m.Config.GetRootNamespace() }

// Namespace is a Kubernetes namespace.
type Namespace struct {
	Name   string
	Labels Labels
	// TrafficDistribution is the namespace's annotation, inherited by its Services; empty when absent.
	TrafficDistribution string
}
