package grpcstream

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"

	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard"
	"github.com/pilotd/pilotd/shard/ads"
)

// Backend takes what clients ask for; shard.Shards is one. A stream's reader calls its methods, one after the other.
// They may block: then only this client waits.
type Backend interface {
	// Attach begins a stream with its first request. An error becomes the stream's status, and Detach is not called then.
	Attach(s shard.Stream, p *proxy.Proxy, first ads.Request) error
	// Receive takes a further request.
	Receive(id uint64, r ads.Request)
	// Detach ends the stream. Nothing is sent on it any more.
	Detach(id uint64)
}

// The service's name and methods.
const (
	serviceName = "envoy.service.discovery.v3.AggregatedDiscoveryService"
	sotwMethod  = "StreamAggregatedResources"
	deltaMethod = "DeltaAggregatedResources"
)

// serviceDesc describes the service. It is written by hand because generated stubs decode and encode every message.
func serviceDesc() *grpc.ServiceDesc {
	method := func(name string, delta bool) grpc.StreamDesc {
		return grpc.StreamDesc{StreamName: name, ServerStreams: true, ClientStreams: true, Handler: handler(delta)}
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

// handler returns the handler of streams of one protocol, and their reader.
//
// An idle stream waits here, and the runtime gives back half of a stack that is less than a quarter full: grpc's frames
// leave a few hundred bytes below a quarter of 16 KiB. So the loop keeps nothing on its stack, and what needs some is
// done in calls that return. bench's BenchmarkMemory shows the difference: 8 KiB a stream.
func handler(delta bool) grpc.StreamHandler {
	return func(srv any, ss grpc.ServerStream) (err error) {
		in := &reading{server: srv.(*Server), conn: connectionOf(ss.Context())}
		defer in.close(&err)
		err = in.begin(ss, delta)
		for err == nil {
			if err = in.next(ss); err == nil {
				err = in.pass()
			}
		}
		return err
	}
}

// close ends a stream for the reason err, which becomes its status. It is deferred: a panic while the stream was read
// ends this stream alone.
func (in *reading) close(err *error) {
	if v := recover(); v != nil {
		in.server.panicked("reading a stream", v)
		*err = errFault()
	}
	*err = in.end(*err)
}

// errFault returns the status of a stream that ended for a fault of the server.
func errFault() error { return status.Error(codes.Internal, "a fault of the server: connect again") }

// panicked reports a panic that was caught, with the stack of the goroutine that is recovering from it.
func (s *Server) panicked(doing string, v any) {
	if f := s.options.Panicked; f != nil {
		f(shard.Fault{Doing: doing, Value: fmt.Sprint(v), Stack: debug.Stack()})
	}
}

// reading is a stream as its reader sees it.
type reading struct {
	incoming
	server   *Server
	stream   *stream // nil if there were too many streams
	conn     *connection
	attached bool
	callers  callerState
	messages messageReader // nil if grpc's stream does not implement it
	header   [5]byte       // of the request that is being received
}

// begin accepts a stream and receives its first request. The caller calls end afterwards, also after an error.
func (in *reading) begin(ss grpc.ServerStream, delta bool) error {
	s := in.server
	if n := s.open.Add(1); n > int64(s.limits.Streams) {
		in.conn = nil
		return s.limits.streams(int(n))
	}
	if err := s.arrives(in.conn); err != nil {
		return err
	}
	st := &stream{id: s.lastID.Add(1), server: s, grpc: ss}
	s.streams.Store(st.id, st)
	s.idleWatch.begin()
	in.stream, in.scanner = st, s.newScanner(delta)
	in.messages = messagesOf(ss)
	select {
	case <-s.draining:
		return errDraining()
	default:
	}
	if err := sendPlain(ss.Context()); err != nil {
		return err
	}
	peer, err := s.authenticate(ss.Context())
	if err != nil {
		return err
	}
	if err := in.admit(ss.Context(), peer); err != nil {
		return err
	}
	st.await()
	if err := in.next(ss); err != nil {
		return err
	}
	if in.err != nil {
		return in.err
	}
	first := in.take()
	client, err := s.options.Accept(first.Node, peer)
	if err != nil {
		return invalid(err)
	}
	first.Node = nil // client has what is needed of it
	if err := s.backend.Attach(st, client, first); err != nil {
		return err
	}
	in.attached = true
	return nil
}

// authenticate returns what the client of a stream has proven.
func (s *Server) authenticate(ctx context.Context) (proxy.Peer, error) {
	if s.options.Authenticate == nil {
		return proxy.Peer{}, nil
	}
	peer, err := s.options.Authenticate(ctx)
	if err != nil {
		return proxy.Peer{}, &refusal{ReasonIdentity, status.Convert(err)}
	}
	return peer, nil
}

// take returns the request that has been received, and drops it from the stream, so that an idle stream keeps nothing.
func (in *reading) take() ads.Request {
	r := in.request
	in.request = ads.Request{}
	return r
}

// pass gives the request that has been received to the Backend. An error becomes the stream's status.
//
//go:noinline
func (in *reading) pass() error {
	r := in.take()
	if in.err == nil {
		in.server.backend.Receive(in.stream.id, r)
	}
	return in.err
}

// end returns the end of a stream for the reason err; its result is the status.
func (in *reading) end(err error) error {
	s := in.server
	in.dismiss() // before the client is told: it may come again at once
	if in.stream == nil {
		s.stats.refuse(err)
	} else {
		err = statusOf(in.stream.finish(err)).Err()
		if in.attached {
			s.backend.Detach(in.stream.id) // nothing is sent any more
		}
		s.streams.Delete(in.stream.id)
	}
	s.departs(in.conn)
	s.open.Add(-1)
	return err
}

// sendPlain turns off the compression that a client that compresses would get in return: responses would be compressed
// for each stream, and count as written when they are not.
func sendPlain(ctx context.Context) error {
	c, ok := grpc.ServerTransportStreamFromContext(ctx).(interface{ SendCompress() string })
	if ok && c.SendCompress() == "" {
		return nil
	}
	return grpc.SetSendCompressor(ctx, encoding.Identity)
}

// invalid returns err as a status.
func invalid(err error) error {
	if errors.Is(err, proxy.ErrClaim) {
		return &refusal{ReasonIdentity, status.New(codes.PermissionDenied, err.Error())}
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return &refusal{ReasonNode, status.Newf(codes.InvalidArgument, "the node is refused: %v", err)}
}
