package xdsproxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotd/pilotd/agent/cell"
	"github.com/pilotd/pilotd/agent/upstream"
	ndsv1 "github.com/pilotd/pilotd/proto/nds/v1"
)

// Options are the settings of a Proxy.
type Options struct {
	Server upstream.Server
	// NameTable takes each name table; nil has none asked for. A table is the taker's own.
	NameTable func(*ndsv1.NameTable)
	// Health is what the control plane is told of the application; nil has it told nothing.
	Health *cell.Cell[Health]
	Log    *slog.Logger
}

// Health is how the application is.
type Health struct {
	// Problem is empty for a healthy one.
	Problem string
}

// Proxy is Envoy's discovery service.
type Proxy struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	// Immutable after New.
	options Options
	// Counts are what has happened so far.
	Counts Counts

	mu sync.Mutex
	// Guarded by mu.
	end context.CancelCauseFunc // ends the stream there is
}

// Counts are how often things have happened. Safe for concurrent use.
type Counts struct {
	Requests, Responses                  atomic.Int64
	UpstreamFailures, UpstreamEnds, Ends atomic.Int64
}

// New returns a Proxy.
func New(o Options) *Proxy { return &Proxy{options: o} }

// Register adds the service to a gRPC server.
func (p *Proxy) Register(to *grpc.Server) {
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(to, p)
}

// errReplaced ends a stream when Envoy opens another one.
var errReplaced = status.Error(codes.Unavailable, "another stream was opened")

// begin ends the stream there is, and returns the context of the new one.
func (p *Proxy) begin(parent context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end != nil {
		p.end(errReplaced)
	}
	p.end = cancel
	return ctx, cancel
}

// StreamAggregatedResources serves a stream of State-of-the-World.
func (p *Proxy) StreamAggregatedResources(
	down discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer,
) error {
	return serve(p, down, sotw())
}

// DeltaAggregatedResources serves a stream of Delta.
func (p *Proxy) DeltaAggregatedResources(
	down discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer,
) error {
	return serve(p, down, delta())
}

// serve passes on what a stream of Envoy and one upstream say, until either ends.
func serve[Q, R any](p *Proxy, down grpc.BidiStreamingServer[Q, R], v variant[Q, R]) error {
	ctx, cancel := p.begin(down.Context())
	defer cancel(nil)
	conn, err := p.options.Server.Dial()
	if err != nil {
		p.failed(err)
		return status.Error(codes.Unavailable, err.Error())
	}
	defer conn.Close()
	up, err := v.open(ctx, conn)
	if err != nil {
		p.failed(err)
		return status.Error(codes.Unavailable, err.Error())
	}
	p.options.Log.Info("connected", "server", p.options.Server.Address)
	s := &session[Q, R]{proxy: p, variant: v, up: up, down: down, listening: make(chan struct{})}
	go func() { cancel(s.requests(ctx)) }()
	if p.options.Health != nil {
		var health sync.WaitGroup
		defer health.Wait()
		defer cancel(nil)
		health.Go(func() { s.tellHealth(ctx) })
	}
	err = s.responses()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	// The reader of requests ends with Envoy's stream, which ends when this function returns: it is not waited for.
	return p.over(err)
}

// failed counts and tells of a control plane that cannot be reached.
func (p *Proxy) failed(err error) {
	p.Counts.UpstreamFailures.Add(1)
	p.options.Log.Warn("no connection to the control plane", "error", err, "server", p.options.Server.Address)
}

// over returns what Envoy is told at the end of a stream.
func (p *Proxy) over(err error) error {
	switch {
	case errors.Is(err, errEnvoyEnded) || errors.Is(err, context.Canceled):
		p.Counts.Ends.Add(1)
		return nil
	case errors.Is(err, errReplaced):
		return err
	case errors.Is(err, io.EOF):
		err = status.Error(codes.Unavailable, "the control plane has ended the stream")
	}
	p.Counts.UpstreamEnds.Add(1)
	p.options.Log.Info("disconnected", "error", err, "server", p.options.Server.Address)
	return err
}
