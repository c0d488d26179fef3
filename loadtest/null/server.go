package null

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// Server is a null server.
type Server struct {
	// Immutable after New.
	grpc    *grpc.Server
	opening map[string]mem.BufferSlice

	mu sync.Mutex
	// Guarded by mu.
	streams  []*stream
	requests int
	want     int
	reached  chan struct{}
}

// stream is one client.
type stream struct {
	grpc.ServerStream
	// Owned by the reader.
	unanswered int // number of types that have not been answered yet
}

// New returns a server that answers the first request for each type in opening with its bytes. options are the same as
// those of the server that it is compared with.
func New(opening map[string][]byte, options ...grpc.ServerOption) *Server {
	s := &Server{opening: map[string]mem.BufferSlice{}}
	for url, b := range opening {
		s.opening[url] = mem.BufferSlice{mem.SliceBuffer(b)}
	}
	s.grpc = grpc.NewServer(append(options, grpc.ForceServerCodecV2(codec{}))...)
	handler := func(srv any, ss grpc.ServerStream) error { return srv.(*Server).serve(ss) }
	s.grpc.RegisterService(&grpc.ServiceDesc{
		ServiceName: "envoy.service.discovery.v3.AggregatedDiscoveryService",
		HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{
			{StreamName: "StreamAggregatedResources", Handler: handler, ServerStreams: true, ClientStreams: true},
			{StreamName: "DeltaAggregatedResources", Handler: handler, ServerStreams: true, ClientStreams: true},
		},
	}, s)
	return s
}

// GRPC returns the grpc server, for the caller to run and stop.
func (s *Server) GRPC() *grpc.Server { return s.grpc }

// serve handles a stream, and is its reader.
func (s *Server) serve(ss grpc.ServerStream) error {
	st := &stream{ServerStream: ss, unanswered: len(s.opening)}
	r := new(request)
	for {
		r.look = st.unanswered > 0
		if err := ss.RecvMsg(r); err != nil {
			return err
		}
		if st.unanswered > 0 && !r.answer {
			if b, ok := s.opening[r.typeURL]; ok {
				if err := ss.SendMsg(b); err != nil {
					return err
				}
				if st.unanswered--; st.unanswered == 0 {
					s.add(st)
				}
			}
		}
		s.count()
	}
}

// add starts sending broadcasts to a stream, once it has all its first answers. Its reader sends nothing from then on.
func (s *Server) add(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams = append(s.streams, st)
}

func (s *Server) count() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	s.tell()
}

// tell wakes Await. The caller holds mu.
func (s *Server) tell() {
	if s.reached != nil && s.requests >= s.want {
		close(s.reached)
		s.reached = nil
	}
}

// Requests returns the number of requests read so far.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// Await returns once n requests have been read in all.
func (s *Server) Await(ctx context.Context, n int) error {
	s.mu.Lock()
	reached := make(chan struct{})
	s.want, s.reached = n, reached
	s.tell()
	s.mu.Unlock()
	select {
	case <-reached:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Broadcast sends b to all streams that have their first answers. It skips streams that have ended.
func (s *Server) Broadcast(b []byte) {
	s.mu.Lock()
	streams := s.streams
	s.mu.Unlock()
	m := mem.BufferSlice{mem.SliceBuffer(b)}
	for _, st := range streams {
		_ = st.SendMsg(m)
	}
}

// request is what a reader decodes of a request.
type request struct {
	look    bool // set by the reader until the stream has all its first answers
	typeURL string
	answer  bool // it has a nonce
}

// codec sends bytes unchanged, and decodes requests only while a stream opens.
type codec struct{ encoding.CodecV2 }

// Name returns the name of the standard codec.
func (codec) Name() string { return "proto" }

// Marshal returns the bytes to send.
func (codec) Marshal(v any) (mem.BufferSlice, error) { return v.(mem.BufferSlice), nil }

// Unmarshal finds the type and the nonce.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	r := v.(*request)
	if !r.look {
		return nil
	}
	b := data.Materialize()
	r.typeURL, r.answer = "", false
	sotw := false
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		if n < 0 || kind != protowire.BytesType {
			return protowire.ParseError(n)
		}
		v, m := protowire.ConsumeBytes(b[n:])
		if m < 0 {
			return protowire.ParseError(m)
		}
		b = b[n+m:]
		switch {
		case (num == 2 || num == 4) && len(v) > 5 &&
			string(v[:5]) == "type.": // Delta has the type in field 2, State-of-the-World in field 4
			r.typeURL, sotw = string(v), num == 4
		case num == 5 && sotw || num == 6:
			r.answer = true
		}
	}
	return nil
}
