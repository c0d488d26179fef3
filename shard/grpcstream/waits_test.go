package grpcstream

import (
	"context"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"

	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/xdstype"
)

// deafPlanner never answers.
type deafPlanner struct{}

func (deafPlanner) Attach(uint64, *proxy.Proxy) {}
func (deafPlanner) Detach(uint64)               {}

// newUndecided returns a server whose shards decide about no request, as their planner is busy.
func newUndecided(t *testing.T, o Options) (*house, *shard.Shards) {
	shards := shard.New(shard.Options{Workers: 1, Planner: deafPlanner{}, Now: time.Now, After: time.After})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); shards.Run(ctx) }()
	h := newHouse(t, o, nil)
	h.server.backend = shards
	t.Cleanup(func() { cancel(); <-ended })
	h.serve(t)
	return h, shards
}

// A client that sends more requests than are decided about, and vanishes, is forgotten at once: it keeps no place among
// those that connect.
func TestVanishedClientIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, shards := newUndecided(t, Options{})
		ctx, vanish := context.WithCancel(t.Context())
		c, err := h.dial(t).StreamAggregatedResources(ctx)
		must(t, err)
		for range 3 {
			must(t, c.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.ClusterURL}))
		}
		if synctest.Wait(); shards.Streams() != 1 {
			t.Fatal(shards.Streams(), "streams are attached, want 1")
		}
		vanish()
		if synctest.Wait(); shards.Streams() != 0 || h.server.Streams() != 0 {
			t.Errorf("%d streams are attached and %d open, of a client that has vanished", shards.Streams(),
				h.server.Streams())
		}
	})
}

// A client whose requests are not decided about does not delay Shutdown.
func TestUndecidedRequestsDoNotDelayShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := newUndecided(t, Options{AfterFunc: afterFunc, Drain: 5 * time.Second})
		c := h.sotw(t)
		for range 3 {
			must(t, c.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.ClusterURL}))
		}
		synctest.Wait()
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
		defer cancel()
		if err := h.server.Shutdown(ctx); err != nil || time.Since(begin) > 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// deafBackend does not return before the test ends, whatever happens to the stream.
type deafBackend struct{ over chan struct{} }

func (b deafBackend) Attach(shard.Stream, *proxy.Proxy, ads.Request) error { <-b.over; return nil }
func (b deafBackend) Receive(uint64, ads.Request)                          {}
func (b deafBackend) Detach(uint64)                                        {}

// Shutdown ends when its time is over even if something does not return.
func TestShutdownEndsInAnyCase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{AfterFunc: afterFunc}, nil)
		b := deafBackend{make(chan struct{})}
		h.server.backend = b
		h.serve(t)
		must(t, h.sotw(t).Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.ClusterURL}))
		synctest.Wait()
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := h.server.Shutdown(ctx); err != context.DeadlineExceeded || time.Since(begin) > 11*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		close(b.over)
	})
}

// A stream on which no first request comes is ended, and one that asks in time stays however long it is silent then.
func TestFirstRequestHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{RequestTime: 20 * time.Second, AfterFunc: afterFunc})
		mute, quiet := h.delta(t), h.delta(t)
		must(t, quiet.Send(&discoveryv3.DeltaDiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.ClusterURL}))
		h.backend.next(t, "attach")
		begin := time.Now()
		_, err := mute.Recv()
		if d := time.Since(begin); status.Code(err) != codes.DeadlineExceeded ||
			!strings.Contains(err.Error(), "no complete request has come for 20s") || d < 20*time.Second ||
			d > 25*time.Second {
			t.Errorf("%v after %v", err, d)
		}
		time.Sleep(time.Hour)
		if h.server.Streams() != 1 || h.server.Stats().Refused[ReasonDeadline] != 1 {
			t.Error(h.server.Streams(), "streams are open,", h.server.Stats())
		}
		must(t, quiet.CloseSend())
		h.backend.next(t, "detach")
	})
}

// A request that begins and does not end, the first or a later one, has a deadline.
func TestRequestThatDoesNotEndHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{RequestTime: 20 * time.Second, AfterFunc: afterFunc})
		c, s := attachRaw(t, h)
		time.Sleep(time.Minute)
		part := make([]byte, 5+100)
		binary.BigEndian.PutUint32(part[1:], 4<<20)
		must(t, c.framer.WriteData(1, false, part))
		time.Sleep(19 * time.Second)
		if h.server.Streams() != 1 {
			t.Fatal("a request that is on its way is cut off")
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if h.backend.next(t, "detach").id != s.id || h.server.Streams() != 0 {
			t.Error("a request that does not end keeps its stream")
		}
	})
}

// Requests are read in two steps, which needs grpc's own stream; and compressed ones are read too.
func TestRequestsAreReadInTwoSteps(t *testing.T) {
	h := start(t, Options{Limits: Limits{RequestBytes: 10_000}})
	for name, option := range map[string][]grpc.CallOption{"plain": nil,
		"compressed": {grpc.UseCompressor(gzip.Name)}} {
		c, err := h.dial(t).StreamAggregatedResources(t.Context(), option...)
		must(t, err)
		must(t, c.Send(&discoveryv3.DiscoveryRequest{Node: nodeOf(1), TypeUrl: xdstype.ClusterURL}))
		e := h.backend.next(t, "attach")
		if messagesOf(e.stream.(*stream).grpc) == nil {
			t.Fatal("grpc's stream does not read in two steps")
		}
		must(t, c.Send(&discoveryv3.DiscoveryRequest{TypeUrl: "second"}))
		if r := h.backend.next(t, "receive").req; r.TypeURL != "second" {
			t.Errorf("%s: %+v", name, r)
		}
		must(t, c.Send(&discoveryv3.DiscoveryRequest{TypeUrl: strings.Repeat("x", 20_000)}))
		if _, err := c.Recv(); status.Code(err) != codes.ResourceExhausted || err == io.EOF {
			t.Error(name, err)
		}
		h.backend.next(t, "detach")
	}
}
