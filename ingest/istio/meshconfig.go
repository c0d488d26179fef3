package istio

import (
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Mesh is the mesh-wide configuration of a process that serves the cluster of that name and DNS domain.
func Mesh(in *meshconfig.MeshConfig, domain, cluster string) *value.Mesh {
	return &value.Mesh{Config: in, DomainSuffix: domain, ClusterID: cluster,
		Retries: optional(in.GetDefaultHttpRetryPolicy(), Retries)}
}
