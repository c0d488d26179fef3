package snapshot

import "github.com/pilotd/pilotd/snapshot/value"

// Batch is a set of changes that become visible together. In every map a nil value deletes the key; a key that is not
// there stays as it is. ingest hands over only what differs from before: a value whose used fields are equal keeps its
// predecessor's pointer and is left out.
type Batch struct {
	// Mesh replaces the mesh configuration; nil leaves it.
	Mesh *value.Mesh

	Namespaces       map[string]*value.Namespace
	Services         map[value.ServiceKey]*value.Service
	VirtualServices  map[value.ObjectKey]*value.VirtualService
	DestinationRules map[value.ObjectKey]*value.DestinationRule
	Gateways         map[value.ObjectKey]*value.Gateway
	Sidecars         map[value.ObjectKey]*value.Sidecar
	// Projections are what the Snapshot knows of a service's endpoints. A batch that changes one carries the endpoints
	// too.
	Projections map[value.ServiceKey]*value.Projection

	// The endpoint lane. A batch with nothing but these touches no Snapshot.
	Endpoints map[value.ServiceKey][]*value.Endpoint
	// Workloads by address. One workload may have several addresses; each is a key.
	Workloads map[string]*value.Workload
}

// EndpointsOnly reports whether the batch touches endpoints and workloads alone.
func (b *Batch) EndpointsOnly() bool {
	return b.Mesh == nil && len(b.Namespaces)+len(b.Services)+len(b.VirtualServices)+len(b.DestinationRules)+
		len(b.Gateways)+len(b.Sidecars)+len(b.Projections) == 0
}
