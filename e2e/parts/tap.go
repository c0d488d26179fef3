package parts

import (
	"context"
	"net"
	"sync"
	"testing"

	discoverypb "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/pilotd/pilotd/e2e/testnet"
)

// Tap is a proxy between an Envoy and pilotd. It forwards every message unchanged and records it: what was sent, for
// the first time or again, and what was refused. It can hold back responses of one type, like a network that fails at
// the worst moment.
type Tap struct {
	discoverypb.UnimplementedAggregatedDiscoveryServiceServer
	// Immutable after StartTap.
	Addr     string
	upstream string

	// Guarded by mu.
	mu      sync.Mutex
	streams int
	passed  []Passed
	refused []string
	held    map[string]chan struct{} // by type URL; closed by Release
	cancel  map[int]context.CancelFunc
}

// StartTap starts a tap in front of the xDS server at upstream.
func StartTap(t testing.TB, upstream string) *Tap {
	t.Helper()
	l, err := net.Listen("tcp", testnet.Host+":0")
	if err != nil {
		t.Fatal(err)
	}
	tap := &Tap{
		Addr: l.Addr().String(), upstream: upstream,
		held: make(map[string]chan struct{}), cancel: make(map[int]context.CancelFunc),
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(64 << 20))
	discoverypb.RegisterAggregatedDiscoveryServiceServer(server, tap)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	t.Cleanup(func() {
		if t.Failed() {
			tap.report(t)
		}
	})
	return tap
}

// report prints the last messages.
func (t *Tap) report(tb testing.TB) {
	for _, detail := range t.Refused() {
		tb.Logf("refused: %s", detail)
	}
	passed := t.Passed(0)
	for _, p := range passed[max(0, len(passed)-40):] {
		tb.Log(p)
	}
}

// Hold holds back responses of a type from now on, and all responses after them.
func (t *Tap) Hold(typeURL string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held[typeURL] = make(chan struct{})
}

// Release ends Hold.
func (t *Tap) Release(typeURL string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c, ok := t.held[typeURL]; ok {
		close(c)
		delete(t.held, typeURL)
	}
}

// Break ends all streams. What is held back is lost.
func (t *Tap) Break() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, cancel := range t.cancel {
		cancel()
	}
}

// Streams returns the number of streams so far, which is the number of the next one.
func (t *Tap) Streams() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.streams
}

// Passed returns what pilotd sent on streams from fromStream on.
func (t *Tap) Passed(fromStream int) []Passed {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Passed
	for _, p := range t.passed {
		if p.Stream >= fromStream {
			out = append(out, p)
		}
	}
	return out
}

// Refused returns the reasons of all refusals, by the client and by ValidateAll.
func (t *Tap) Refused() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.refused...)
}

// StreamAggregatedResources passes a SotW stream on.
func (t *Tap) StreamAggregatedResources(
	down discoverypb.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return pass(t, down, func(ctx context.Context,
		c discoverypb.AggregatedDiscoveryServiceClient) (upstream[discoverypb.DiscoveryRequest,
		discoverypb.DiscoveryResponse], error) {
		return c.StreamAggregatedResources(ctx)
	}, passedSotW)
}

// DeltaAggregatedResources passes a Delta stream on.
func (t *Tap) DeltaAggregatedResources(
	down discoverypb.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return pass(t, down, func(ctx context.Context,
		c discoverypb.AggregatedDiscoveryServiceClient) (upstream[discoverypb.DeltaDiscoveryRequest,
		discoverypb.DeltaDiscoveryResponse], error) {
		return c.DeltaAggregatedResources(ctx)
	}, passedDelta)
}

// upstream is the stream to pilotd.
type upstream[Req, Resp any] interface {
	Send(*Req) error
	Recv() (*Resp, error)
}

// downstream is the stream to the Envoy.
type downstream[Req, Resp any] interface {
	Recv() (*Req, error)
	Send(*Resp) error
	Context() context.Context
}

// pass forwards messages in both directions until either side ends.
func pass[Req, Resp any](
	t *Tap, down downstream[Req, Resp],
	open func(context.Context, discoverypb.AggregatedDiscoveryServiceClient) (upstream[Req, Resp], error),
	describe func(*Resp) Passed,
) error {
	ctx, number, end := t.begin(down.Context())
	defer end()
	// Each stream gets a connection of its own, because a failed one would delay the next stream.
	conn, err := grpc.NewClient(t.upstream, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		return err
	}
	defer conn.Close()
	up, err := open(ctx, discoverypb.NewAggregatedDiscoveryServiceClient(conn))
	if err != nil {
		return err
	}
	ended := make(chan error, 2)
	go func() {
		for {
			req, err := down.Recv()
			if err == nil {
				t.note(req)
				err = up.Send(req)
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	go func() {
		for {
			resp, err := up.Recv()
			if err == nil {
				p := describe(resp)
				p.Stream = number
				err = t.admit(ctx, p)
			}
			if err == nil {
				err = down.Send(resp)
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = ctx.Err()
	}
	return status.Errorf(codes.Unavailable, "tap: %v", err)
}

// begin counts a stream, which Break can then end.
func (t *Tap) begin(parent context.Context) (context.Context, int, func()) {
	ctx, cancel := context.WithCancel(parent)
	t.mu.Lock()
	defer t.mu.Unlock()
	number := t.streams
	t.streams++
	t.cancel[number] = cancel
	return ctx, number, func() {
		cancel()
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.cancel, number)
	}
}

// admit waits while responses of p's type are held back, then records p.
func (t *Tap) admit(ctx context.Context, p Passed) error {
	t.mu.Lock()
	gate, held := t.held[p.TypeURL]
	t.mu.Unlock()
	if held {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.passed = append(t.passed, p)
	t.refused = append(t.refused, p.Invalid...)
	return nil
}

// note records a refusal.
func (t *Tap) note(req any) {
	var detail, typeURL string
	switch r := req.(type) {
	case *discoverypb.DiscoveryRequest:
		detail, typeURL = r.GetErrorDetail().GetMessage(), r.TypeUrl
	case *discoverypb.DeltaDiscoveryRequest:
		detail, typeURL = r.GetErrorDetail().GetMessage(), r.TypeUrl
	}
	if detail == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused = append(t.refused, short(typeURL)+": "+detail)
}
