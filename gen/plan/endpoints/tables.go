package endpoints

import (
	"strings"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TypeURL is the type of the resources.
const TypeURL = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

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

// Part is empty: endpoints come and go, and with them how they are cut into parts.
func (k Selection) Part() string { return "" }

// Objects are what defines the service.
func (k Selection) Objects() []value.ObjectKey { return []value.ObjectKey{k.Defined} }

// Tables intern Assignments, and the encoded endpoints that these share. Safe for concurrent use.
type Tables struct {
	assignments *encodecache.Table[Key, Assignment]
	encoded     *encodecache.Table[Selection, encoded]
}

// NewTables makes empty Tables.
func NewTables() Tables {
	encodings := encodecache.NewTable(newEncoded)
	return Tables{
		assignments: encodecache.NewTable(func(k Key) *Assignment {
			return &Assignment{Name: k.Name, Service: k.Selection.Service, order: k.Order,
				encoded: encodings.Get(k.Selection)}
		}),
		encoded: encodings,
	}
}

// Get is the Assignment of a Key.
func (t Tables) Get(k Key) *Assignment { return t.assignments.Get(k) }

// Sizes are how many Assignments, and how many Selections, somebody holds.
func (t Tables) Sizes() (assignments, selections int) { return t.assignments.Len(), t.encoded.Len() }

// labelsOf is the inverse of value.LabelsKey.
func labelsOf(key string) value.Labels {
	if key == "" {
		return nil
	}
	out := value.Labels{}
	for l := range strings.SplitSeq(key, ",") {
		k, v, _ := strings.Cut(l, "=")
		out[k] = v
	}
	return out
}
