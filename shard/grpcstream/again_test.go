package grpcstream

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotd/pilotd/xdstype"
)

// TestSendAway has one client after the other sent away: all streams of its connection end, then the connection; those
// that have come since stay. Who comes again does so over a new connection.
func TestSendAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{AfterFunc: afterFunc})
		open := func(conn *grpc.ClientConn) sotwClient {
			t.Helper()
			c, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(t.Context())
			must(t, err)
			err = c.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.ClusterURL})
			if !errors.Is(err, io.EOF) { // it may have ended already: Recv says why
				must(t, err)
			}
			return c
		}
		attached := func(conn *grpc.ClientConn) sotwClient {
			t.Helper()
			c := open(conn)
			h.backend.next(t, "attach")
			return c
		}
		a, b := h.conn(t), h.conn(t)
		old := []sotwClient{attached(a), attached(a), attached(b)}
		mark := h.server.Newest()
		late := attached(h.conn(t))
		for range 2 {
			if !h.server.SendAway(mark) {
				t.Error("nobody is sent away")
			}
		}
		if h.server.SendAway(mark) {
			t.Error("somebody is sent away who has just come")
		}
		for _, c := range append(old, open(a)) { // the last one over a connection that ends
			if _, err := c.Recv(); status.Code(err) != codes.Unavailable {
				t.Error(err)
			}
		}
		synctest.Wait()
		for range old {
			h.backend.next(t, "detach")
		}
		time.Sleep(2 * partingTime)
		again := attached(a)
		must(t, again.CloseSend())
		h.backend.next(t, "detach")
		synctest.Wait() // it is counted behind that
		if n := h.server.Streams(); n != 1 || h.server.Stats().Away != 2 || h.server.connections.Load() != 1 {
			t.Error(n, "streams,", h.server.Stats().Away, "sent away,", h.server.connections.Load(), "connections")
		}
		must(t, late.CloseSend())
		h.backend.next(t, "detach")
	})
}

// sotwClient is a client's stream.
type sotwClient = discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient
