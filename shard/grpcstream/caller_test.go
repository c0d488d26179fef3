package grpcstream

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/identity/quota"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/xdstype"
)

// named lets clients in as whom they name.
func named(ctx context.Context) (proxy.Peer, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	return proxy.Peer{Peer: identity.Peer{Identity: identity.Identity{TrustDomain: "td", Namespace: "ns",
		ServiceAccount: md.Get("who")[0]}}}, nil
}

// as opens a stream of whom it names.
func (h *house) as(t testing.TB, who string) discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient {
	t.Helper()
	s, err := h.dial(t).StreamAggregatedResources(metadata.AppendToOutgoingContext(t.Context(), "who", who))
	must(t, err)
	err = s.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.ClusterURL})
	if err != io.EOF { // it has been refused already: Recv has the status
		must(t, err)
	}
	return s
}

// An identity has its share of the streams, on whatever connections; what has ended counts no more.
func TestStreamsOfOneIdentity(t *testing.T) {
	h := start(t, Options{Authenticate: named, Limits: Limits{StreamsPerCaller: 2}})
	first := h.as(t, "greedy")
	h.backend.next(t, "attach")
	h.as(t, "greedy")
	h.backend.next(t, "attach")
	if _, err := h.as(t, "greedy").Recv(); status.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
	if n := h.server.Stats().Refused[ReasonShare]; n != 1 {
		t.Errorf("%d are counted", n)
	}
	h.as(t, "modest")
	h.backend.next(t, "attach")
	must(t, first.CloseSend())
	h.backend.next(t, "detach")
	if _, err := first.Recv(); err == nil {
		t.Error("it goes on")
	}
	h.as(t, "greedy")
	h.backend.next(t, "attach")
}

// What a client asks for beyond what a connecting one needs is charged; answers never are.
func TestRequestsOfOneIdentity(t *testing.T) {
	now := time.Now()
	h := start(t, Options{Authenticate: named, Requests: quota.NewRate(1, func() time.Time { return now })})
	s := h.as(t, "web") // one of ten
	e := h.backend.next(t, "attach")
	for i := range 100 {
		e.stream.Send(xdstype.ClusterURL, response(fmt.Sprint(i), 1))
		_, err := s.Recv()
		must(t, err)
		must(t, s.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xdstype.ClusterURL, ResponseNonce: fmt.Sprint(i)}))
		h.backend.next(t, "receive")
	}
	for range freeRequests - 1 + 9 {
		must(t, s.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xdstype.EndpointURL}))
		h.backend.next(t, "receive")
	}
	must(t, s.Send(&discoveryv3.DiscoveryRequest{TypeUrl: xdstype.EndpointURL}))
	if _, err := s.Recv(); status.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
	h.backend.next(t, "detach")
	if _, err := h.as(t, "web").Recv(); status.Code(err) != codes.ResourceExhausted { // nor a new stream
		t.Error(err)
	}
	if n := h.server.Stats().Refused[ReasonRate]; n != 2 {
		t.Errorf("%d are counted", n)
	}
	h.as(t, "other")
	h.backend.next(t, "attach")
}
