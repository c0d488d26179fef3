package xdstype

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Type is a resource type: the index of its row in a Table. Types are sent in the order of their rows.
type Type uint8

// The types of the standard rows.
const (
	Cluster Type = iota
	Endpoint
	Listener
	Route
	NameTable
	Secret

	// NumStandard is how many standard rows there are.
	NumStandard = iota

	// None is no type.
	None Type = ^Type(0)
)

// The URLs of the standard rows.
const (
	ClusterURL   = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	EndpointURL  = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	ListenerURL  = "type.googleapis.com/envoy.config.listener.v3.Listener"
	RouteURL     = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	NameTableURL = "type.googleapis.com/istio.networking.nds.v1.NameTable"
	SecretURL    = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
)

// Row is what is to be known about one type.
type Row struct {
	// URL is the type's URL, as requests and responses carry it.
	URL string
	// Short is the name of the type's discovery service: CDS. Noun is what one resource is called: cluster.
	Short, Noun string
	// Source says who makes the resources.
	Source Source
	// OnDemand tells that the resources are made once a client asks for them, and until none does any more. There are
	// always some: where a ResourceSet has none they are not made yet, so that clients are told nothing.
	OnDemand bool

	// Complete tells that a State-of-the-World response has all resources that the client subscribes to: one that it
	// does not name is gone. A response of another type may have some of the resources, and cannot say that one is gone.
	Complete bool
	// Wildcard tells that a State-of-the-World request without names subscribes to all resources, until the stream has
	// named one. The name "*" always does.
	Wildcard bool
	// Removal says when what is gone is taken away from clients.
	Removal Removal
	// Empty, unless it is nil, makes the resource that a sidecar gets for a name that does not exist. Without it such a
	// name gets nothing, or with Delta the answer that it is removed.
	Empty func(name string) []byte

	// Follows is the type that leads to this one: when a client gets a new ResourceSet, this type waits until Follows
	// has been sent from it.
	Follows Type
	// Warms is the type whose changed resources do not work, and are not ACKed, before the client has resources of this
	// type with the same names. They are sent after each response of Warms, for clients do not ask.
	Warms Type
	// Mentions is a type whose resources these name. A response that names one that is new to the client waits, for a
	// bounded time, until the client has ACKed it.
	Mentions Type

	// Parts says how resources are divided into parts that can be left out one by one when a client refuses them.
	Parts Parts
	// Errors are the forms in which Envoy names a refused resource of the type.
	Errors Errors

	// Type is the index of the row. NewTable sets it.
	Type Type
}

// Source says who makes the resources of a type.
type Source uint8

const (
	// FromConfig makes the resources with the ResourceSet, which has them.
	FromConfig Source = iota
	// FromEndpoints makes the resources from what the ResourceSet says and from endpoints, which change on a lane of
	// their own. A ResourceSet may also have such resources ready made.
	FromEndpoints
	// FromIdentity makes the resources for each client by who it has proven to be. No ResourceSet has them and nothing
	// keeps them for others: pages do not show them, nor what clients say of them, for that may have them in it.
	FromIdentity
)

// Removal says when resources that are gone are taken away from clients.
type Removal uint8

const (
	// AtOnce takes them away with the next response: what replaces a listener may need its address.
	AtOnce Removal = iota
	// Last takes them away when the client has all that replaces them, or after a bounded time.
	Last
)

// Parts are the parts that resources of a type have: fields of the message that repeat.
type Parts struct {
	// Noun is what a part is called: virtual host.
	Noun string
	// Field is the number of the field; 0 for a type whose resources are sent as a whole or not at all. Names are the
	// numbers of the fields, inside of that, that tell one part from another: the first that is there counts, and 0 is
	// none.
	Field protowire.Number
	Names [2]protowire.Number
	// Needed tells that a resource without any part is of no use.
	Needed bool
	// WholeForSidecars tells that sidecars get the resource as a whole or not at all.
	WholeForSidecars bool
}

// Errors are the forms in which Envoy names a refused resource.
type Errors struct {
	// List begins a list of resources with what is wrong with each; empty if Envoy writes none. Between stands
	// Separator.
	List, Separator string
	// NameField is the field of the message that has the name of the resource.
	NameField string
}

// Opaque returns a row for a type of which nothing but the URL is known. It stands alone: it neither waits for other
// types nor holds them back, and a request without names subscribes to all of it.
func Opaque(url string) Row {
	return Row{URL: url, Short: url, Noun: url, Wildcard: true, Follows: None, Warms: None, Mentions: None}
}

// String returns the short name of a standard type.
func (t Type) String() string {
	if rows := standard(); int(t) < len(rows) {
		return rows[t].Short
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Row returns the row of a standard type.
func (t Type) Row() Row { return standard()[t] }

// URL returns the URL of a standard type.
func (t Type) URL() string { return standard()[t].URL }

// Of returns the standard type with that URL, and reports whether there is one.
func Of(url string) (Type, bool) {
	for t, row := range standard() {
		if row.URL == url {
			return Type(t), true
		}
	}
	return None, false
}
