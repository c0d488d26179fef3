package endpoints

import (
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Key is the identity of an Assignment.
type Key struct {
	// Name is the name of the resource.
	Name      string
	Selection Selection
	// Order is how the endpoints rank for the clients. Its Labels are those of the Selection.
	Order gen.Ordering
}

// Selection says which endpoints an assignment has and how they are written, whatever their order: what the
// assignments of one service have in common for clients in different places.
type Selection struct {
	Service value.ServiceKey
	// Defined is the object that defines the service.
	Defined value.ObjectKey
	// Port is the name of the service port, Subset the value.LabelsKey of the subset's labels.
	Port, Subset string
	// Local restricts the endpoints to those on Node.
	Local bool
	Node  string
	// Draining adds the endpoints that only keep their sessions.
	Draining bool
	Form     gen.EndpointForm
	// Labels are those of a gen.Ordering: they split the endpoints of a locality.
	Labels string
	// Once lists an address that comes twice once.
	Once bool
	// None selects no endpoint: the cluster has its endpoints in itself.
	None bool
}

// Part returns "": endpoints come and go, and with them how they are cut into parts.
func (k Selection) Part() string { return "" }

// Objects returns what defines the service.
func (k Selection) Objects() []value.ObjectKey { return []value.ObjectKey{k.Defined} }
