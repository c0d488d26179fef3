package ads

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
)

// Request is a DiscoveryRequest or DeltaDiscoveryRequest, scanned. Immutable once given away.
type Request struct {
	// Delta tells which of the two it is; all requests of a stream are of one kind.
	Delta   bool
	TypeURL string
	// Node is who the client is. Only the first request of a stream needs it.
	Node *corev3.Node
	// Nonce is the response_nonce: which response is answered; empty for none.
	Nonce string
	// Error is the error_detail of a refusal (NACK), else nil.
	Error *statuspb.Status

	// Version is version_info, State-of-the-World only: what the client accepted last.
	Version string
	// Names are the resource_names, State-of-the-World only; nil when absent or empty.
	Names *Names

	// Subscribe and Unsubscribe change the subscription, Delta only.
	Subscribe, Unsubscribe *Names
	// Initial are initial_resource_versions, Delta only: what the client has from an earlier stream. They go to the
	// Session.
	Initial *Versions
}

// Type is a served resource type, in the order in which types are sent.
type Type uint8

// The served types.
const (
	Clusters Type = iota
	Endpoints
	Listeners
	Routes

	numTypes = 4
)

// The URLs of the served types.
const (
	ClusterURL  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	EndpointURL = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	ListenerURL = "type.googleapis.com/envoy.config.listener.v3.Listener"
	RouteURL    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)

// TypeOf is the type of a URL; false when it is not served.
func TypeOf(url string) (Type, bool) {
	switch url {
	case ClusterURL:
		return Clusters, true
	case EndpointURL:
		return Endpoints, true
	case ListenerURL:
		return Listeners, true
	case RouteURL:
		return Routes, true
	}
	return 0, false
}

// URL is the type's URL.
func (t Type) URL() string {
	return [numTypes]string{ClusterURL, EndpointURL, ListenerURL, RouteURL}[t]
}

func (t Type) String() string { return [numTypes]string{"CDS", "EDS", "LDS", "RDS"}[t] }

// root reports whether a State-of-the-World response of this type is complete: what it does not name is gone.
func (t Type) root() bool { return t == Clusters || t == Listeners }
