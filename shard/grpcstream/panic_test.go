package grpcstream

import (
	"strings"
	"sync/atomic"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard"
	"github.com/pilotd/pilotd/xdstype"
)

// A panic while a stream is read ends that stream; another one goes on, and the counts return to what they were.
func TestAPanicOfAReaderEndsItsStream(t *testing.T) {
	var faults atomic.Int32
	h := start(t, Options{
		Accept: func(n *corev3.Node, peer proxy.Peer) (*proxy.Proxy, error) {
			if strings.Contains(n.GetId(), "2") {
				panic("sabotage")
			}
			return accept(n, peer)
		},
		Panicked: func(f shard.Fault) {
			if f.Value == "sabotage" && strings.Contains(string(f.Stack), "grpcstream") {
				faults.Add(1)
			}
		},
	})
	first := h.sotw(t)
	must(t, first.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.ClusterURL}))
	s := h.backend.next(t, "attach").stream
	second := h.sotw(t)
	must(t, second.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(2), TypeUrl: xdstype.ClusterURL}))
	if _, err := second.Recv(); status.Code(err) != codes.Internal {
		t.Error(err)
	}
	s.Send(xdstype.ClusterURL, response("1", 1))
	_, err := first.Recv()
	must(t, err)
	must(t, first.CloseSend())
	h.backend.next(t, "detach")
	if faults.Load() != 1 {
		t.Errorf("%d faults", faults.Load())
	}
}
