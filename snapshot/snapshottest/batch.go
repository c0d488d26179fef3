// Package snapshottest lets tests and benchmarks write down what a Builder is to publish as new values alone. The
// Store, which knows the old values, hands over a snapshot.Delta instead.
package snapshottest

import (
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Batch is a set of new values that become visible together. In every map nil deletes the key; a key that is not there
// stays as it is.
type Batch struct {
	// Mesh replaces the mesh configuration; nil leaves it.
	Mesh *value.Mesh

	Namespaces       map[string]*value.Namespace
	Services         map[value.ServiceKey]*value.Service
	VirtualServices  map[value.ObjectKey]*value.VirtualService
	DestinationRules map[value.ObjectKey]*value.DestinationRule
	Gateways         map[value.ObjectKey]*value.Gateway
	Sidecars         map[value.ObjectKey]*value.Sidecar
	// Objects are those of any kind.
	Objects     map[value.ObjectKey]value.Value
	Projections map[value.ServiceKey]*value.Projection
	Endpoints   map[value.ServiceKey][]*value.Endpoint
	Workloads   map[string]*value.Workload
}

// Apply publishes a Batch. Nobody else may publish at the same time.
func Apply(b *snapshot.Builder, batch *Batch) { b.Apply(batch.Delta(b.View())) }

// Delta returns what the Batch changes of a View.
func (b *Batch) Delta(v *snapshot.View) *snapshot.Delta {
	d := &snapshot.Delta{All: b.Mesh != nil, Mesh: b.Mesh}
	objects(d, v, b.VirtualServices)
	objects(d, v, b.DestinationRules)
	objects(d, v, b.Gateways)
	objects(d, v, b.Sidecars)
	for name, next := range b.Namespaces {
		objects(d, v, map[value.ObjectKey]*value.Namespace{{Kind: value.KindNamespace, Name: name}: next})
	}
	for k, next := range b.Objects {
		d.Objects.Add(k, v.Snapshot.Object(k), next)
	}
	for k, next := range b.Services {
		d.Services.Add(k, v.Snapshot.Service(k), next)
	}
	for k, next := range b.Projections {
		d.Projections.Add(k, v.Snapshot.KnownProjection(k), next)
	}
	for k, next := range b.Endpoints {
		d.Endpoints.Add(k, v.Endpoints.Set(k), snapshot.NewEndpointSet(next))
	}
	for k, next := range b.Workloads {
		d.Workloads.Add(k, v.Endpoints.Workload(k), next)
	}
	return d
}

// objects adds the values of one kind; a nil pointer of a kind is no value.
func objects[V any, P interface {
	*V
	value.Value
}](d *snapshot.Delta, v *snapshot.View, values map[value.ObjectKey]P) {
	for k, next := range values {
		if next == nil {
			d.Objects.Add(k, v.Snapshot.Object(k), nil)
		} else {
			d.Objects.Add(k, v.Snapshot.Object(k), next)
		}
	}
}
