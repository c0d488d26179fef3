package xdsproxy

import (
	"context"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// variant holds the differences between the two variants of xDS. Q is a request, R a response.
type variant[Q, R any] struct {
	open func(context.Context, *grpc.ClientConn) (grpc.BidiStreamingClient[Q, R], error)
	// url returns the type URL of a request, answered that of a response.
	url      func(*Q) string
	answered func(*R) string
	// request encodes a request of the agent's own; ack encodes an acknowledgement of a response.
	request func(ask) *Q
	ack     func(*R) ask
	// first returns the first resource of a response, or nil if it has none.
	first func(*R) []byte
}

// ask is a request of the agent's own: a subscription to everything of a type, or an answer to a response.
type ask struct {
	url, nonce, version string
	// problem is the error detail of a NACK; empty means an ACK.
	problem string
	code    codes.Code
}

func (a ask) detail() *statuspb.Status {
	if a.problem == "" {
		return nil
	}
	return &statuspb.Status{Code: int32(a.code), Message: a.problem}
}

func delta() variant[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse] {
	type (
		request  = discoveryv3.DeltaDiscoveryRequest
		response = discoveryv3.DeltaDiscoveryResponse
	)
	return variant[request, response]{
		open: func(ctx context.Context, c *grpc.ClientConn) (grpc.BidiStreamingClient[request, response], error) {
			return discoveryv3.NewAggregatedDiscoveryServiceClient(c).DeltaAggregatedResources(ctx)
		},
		url:      func(q *request) string { return q.TypeUrl },
		answered: func(r *response) string { return r.TypeUrl },
		request: func(a ask) *request {
			return &request{TypeUrl: a.url, ResponseNonce: a.nonce, ErrorDetail: a.detail()}
		},
		ack: func(r *response) ask { return ask{url: r.TypeUrl, nonce: r.Nonce} },
		first: func(r *response) []byte {
			if len(r.Resources) == 0 {
				return nil
			}
			return r.Resources[0].GetResource().GetValue()
		},
	}
}

func sotw() variant[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse] {
	type (
		request  = discoveryv3.DiscoveryRequest
		response = discoveryv3.DiscoveryResponse
	)
	return variant[request, response]{
		open: func(ctx context.Context, c *grpc.ClientConn) (grpc.BidiStreamingClient[request, response], error) {
			return discoveryv3.NewAggregatedDiscoveryServiceClient(c).StreamAggregatedResources(ctx)
		},
		url:      func(q *request) string { return q.TypeUrl },
		answered: func(r *response) string { return r.TypeUrl },
		request: func(a ask) *request {
			return &request{TypeUrl: a.url, ResponseNonce: a.nonce, VersionInfo: a.version, ErrorDetail: a.detail()}
		},
		ack: func(r *response) ask { return ask{url: r.TypeUrl, nonce: r.Nonce, version: r.VersionInfo} },
		first: func(r *response) []byte {
			if len(r.Resources) == 0 {
				return nil
			}
			return r.Resources[0].GetValue()
		},
	}
}
