package grpcstream

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/pilotd/pilotd/identity/quota"
	"github.com/pilotd/pilotd/proxy"
)

// freeRequests is how many requests a stream may send besides its answers before they are charged: what a client asks
// for when it connects, and some more.
const freeRequests = 32

// callerState is what a stream's reader knows of who is charged for it.
type callerState struct {
	caller   quota.Caller
	entered  bool   // it counts in the share of streams
	requests uint64 // received
}

// callerOf returns who is charged for what comes over the stream of ctx, from a client that has proven that.
func callerOf(ctx context.Context, p proxy.Peer) quota.Caller {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return quota.Of(p.Identity, nil)
	}
	return quota.Of(p.Identity, from.Addr)
}

// admit charges a new stream to its caller.
func (in *reading) admit(ctx context.Context, p proxy.Peer) error {
	s, c := in.server, &in.callers
	c.caller = callerOf(ctx, p)
	if !s.options.Requests.Take(c.caller, 1) {
		return tooOften(c.caller)
	}
	if c.entered = s.share.Enter(c.caller); !c.entered {
		return &refusal{ReasonShare, status.Newf(codes.ResourceExhausted, "too many streams of %s: the limit is %d",
			c.caller, s.limits.StreamsPerCaller)}
	}
	return nil
}

// dismiss undoes admit.
func (in *reading) dismiss() {
	if in.callers.entered {
		in.server.share.Leave(in.callers.caller)
	}
}

// charge charges a request to the stream's caller, unless the stream was sent a response for it: who answers what it is
// sent is never refused, however often that is.
func (in *reading) charge() error {
	c := &in.callers
	c.requests++
	if c.requests <= freeRequests+in.stream.progress.Load() || in.server.options.Requests.Take(c.caller, 1) {
		return nil
	}
	return tooOften(c.caller)
}

func tooOften(c quota.Caller) error {
	return &refusal{ReasonRate, status.Newf(codes.ResourceExhausted, "too many requests of %s in a short time", c)}
}
