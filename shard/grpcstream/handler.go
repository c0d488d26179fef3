package grpcstream

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"

	"github.com/pilotd/pilotd/gen/plan"
	"github.com/pilotd/pilotd/shard"
	"github.com/pilotd/pilotd/shard/ads"
)

// Backend is told what clients ask for; it is the Shards. Its methods are called by the stream's reader, one after the other, and may
// block: then only this client waits.
type Backend interface {
	// Attach begins a stream with its first request. After an error, the stream's status, there is no Detach.
	Attach(s shard.Stream, p *plan.Proxy, first ads.Request) error
	// Receive takes a further request.
	Receive(id uint64, r ads.Request)
	// Detach ends the stream; it sends nothing any more.
	Detach(id uint64)
}

// The service's name and methods.
const (
	serviceName = "envoy.service.discovery.v3.AggregatedDiscoveryService"
	sotwMethod  = "StreamAggregatedResources"
	deltaMethod = "DeltaAggregatedResources"
)

// serviceDesc is written by hand because generated stubs decode and encode every message.
func serviceDesc() *grpc.ServiceDesc {
	method := func(name string, delta bool) grpc.StreamDesc {
		return grpc.StreamDesc{StreamName: name, ServerStreams: true, ClientStreams: true,
			Handler: func(srv any, ss grpc.ServerStream) error { return srv.(*Server).serve(ss, delta) }}
	}
	return &grpc.ServiceDesc{
		ServiceName: serviceName,
		HandlerType: (*any)(nil),
		Streams:     []grpc.StreamDesc{method(sotwMethod, false), method(deltaMethod, true)},
		Metadata:    "envoy/service/discovery/v3/ads.proto",
	}
}

func errDraining() error {
	return status.Error(codes.Unavailable, "the server is shutting down: connect again")
}

// serve is the handler of a stream, and its reader.
func (s *Server) serve(ss grpc.ServerStream, delta bool) error {
	n := s.open.Add(1)
	defer s.open.Add(-1)
	if n > int64(s.limits.Streams) {
		s.stats.refused.Add(1)
		return s.limits.streams(int(n))
	}
	st := &stream{id: s.lastID.Add(1), server: s, grpc: ss}
	s.streams.Store(st.id, st)
	defer s.streams.Delete(st.id)
	err := st.finish(s.run(st, delta))
	if status.Code(err) == codes.ResourceExhausted {
		s.stats.refused.Add(1)
	}
	return err
}

// run is a stream from its first request to its end, of which it returns the reason.
func (s *Server) run(st *stream, delta bool) error {
	if err := s.awaitReady(st.grpc.Context()); err != nil {
		return err
	}
	if err := sendPlain(st.grpc.Context()); err != nil {
		return err
	}
	in := &incoming{scanner: s.newScanner(delta)}
	first, err := in.receive(st.grpc)
	if err != nil {
		return err
	}
	proxy, err := s.options.ParseNode(first.Node)
	if err != nil {
		return invalid(err)
	}
	if err := s.backend.Attach(st, proxy, first); err != nil {
		return err
	}
	defer s.backend.Detach(st.id)
	for {
		r, err := in.receive(st.grpc)
		if err != nil {
			return st.finish(err) // nothing is sent after Detach
		}
		s.backend.Receive(st.id, r)
	}
}

// receive reads the next request. The error is the stream's status.
func (in *incoming) receive(ss grpc.ServerStream) (ads.Request, error) {
	if err := ss.RecvMsg(in); err != nil {
		return ads.Request{}, err
	}
	r := in.request
	in.request = ads.Request{} // an idle stream keeps nothing
	return r, in.err
}

// sendPlain turns off the compression that a client that compresses would get in return: responses would be compressed for each stream,
// and count as written when they are not.
func sendPlain(ctx context.Context) error {
	c, ok := grpc.ServerTransportStreamFromContext(ctx).(interface{ SendCompress() string })
	if ok && c.SendCompress() == "" {
		return nil
	}
	return grpc.SetSendCompressor(ctx, encoding.Identity)
}

// invalid is err as a status.
func invalid(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Errorf(codes.InvalidArgument, "the node is refused: %v", err)
}

// awaitReady returns when the server has something to say, or why this stream must come again.
func (s *Server) awaitReady(ctx context.Context) error {
	select {
	case <-s.draining:
		return errDraining()
	default:
	}
	if s.options.Ready == nil {
		return nil
	}
	if !s.options.WaitReady {
		select {
		case <-s.options.Ready:
			return nil
		default:
			return status.Error(codes.Unavailable, "the server has not read all its sources yet: connect again")
		}
	}
	select {
	case <-s.options.Ready:
		return nil
	case <-s.draining:
		return errDraining()
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}
