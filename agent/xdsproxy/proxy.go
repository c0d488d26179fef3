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
	// NameTable takes each name table and owns it from then on. nil means that no name table is requested.
	NameTable func(*ndsv1.NameTable)
	// Health is the application's health, which is reported to the control plane. nil means that nothing is reported.
	Health *cell.Cell[Health]
	Log    *slog.Logger
}

// Health is the health of the application.
type Health struct {
	// Problem says what is wrong; empty means healthy.
	Problem string
}

// Proxy is the discovery service that Envoy connects to.
type Proxy struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	// Immutable after New.
	options Options
	// Counts are counters for metrics.
	Counts Counts

	mu sync.Mutex
	// Guarded by mu.
	end context.CancelCauseFunc // ends the current stream; nil if there is none
}

// Counts counts events of the proxy. Safe for concurrent use.
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

// errReplaced ends a stream because Envoy has opened another one.
var errReplaced = status.Error(codes.Unavailable, "another stream was opened")

// begin ends the current stream, and returns the context of the new one.
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

// serve relays between a stream of Envoy and an upstream stream, until either ends.
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
	// The reader of requests ends when this function returns, because Envoy's stream ends then. So it is not waited
	// for.
	return p.over(err)
}

// failed counts and logs that the control plane cannot be reached.
func (p *Proxy) failed(err error) {
	p.Counts.UpstreamFailures.Add(1)
	p.options.Log.Warn("no connection to the control plane", "error", err, "server", p.options.Server.Address)
}

// over returns the error that Envoy's stream ends with.
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
