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
