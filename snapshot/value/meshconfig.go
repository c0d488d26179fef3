package value

import (
	"google.golang.org/protobuf/proto"
	meshconfig "istio.io/api/mesh/v1alpha1"
)

// KindMeshConfig is the mesh configuration, which is part of a ConfigMap or a file.
const KindMeshConfig Kind = "MeshConfig"

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

// Object is the key of the mesh's configuration: there is one.
func (m *Mesh) Object() ObjectKey { return ObjectKey{Kind: KindMeshConfig} }

// Equal reports whether two mesh configurations are the same.
func (m *Mesh) Equal(o *Mesh) bool {
	return m == o || m.DomainSuffix == o.DomainSuffix && m.ClusterID == o.ClusterID && proto.Equal(m.Config, o.Config) &&
		same(m.Retries, o.Retries)
}
