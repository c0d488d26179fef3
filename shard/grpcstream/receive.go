package grpcstream

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"reflect"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// messageReader is what grpc's own stream is besides its public interface: it reads a message in two steps. Between
// them it is known that a request has begun, so that one that never ends is noticed; RecvMsg waits for either in the
// same way. TestRequestsAreReadInTwoSteps fails if it is no longer so; then RecvMsg is used, and only the first request
// has a deadline.
type messageReader interface {
	ReadMessageHeader([]byte) error
	Read(int) (mem.BufferSlice, error)
	RecvCompress() string
}

// messagesOf returns the messageReader of a stream; nil if it has none, or if an interceptor has put a stream of its
// own around it, which may want to see what is received.
func messagesOf(ss grpc.ServerStream) messageReader {
	if reflect.TypeOf(ss).String() != "*grpc.serverStream" {
		return nil
	}
	m, _ := grpc.ServerTransportStreamFromContext(ss.Context()).(messageReader)
	return m
}

// Receive reads a request of at most limit bytes, uncompressed, into m, from a stream of another service on a server of
// this package: a larger one is refused before it has come.
func Receive(ss grpc.ServerStream, limit int, m proto.Message) error {
	from := messagesOf(ss)
	if from == nil {
		return ss.RecvMsg(m)
	}
	var header [headerLen]byte
	if err := from.ReadMessageHeader(header[:]); err != nil {
		return broken(err)
	}
	n := binary.BigEndian.Uint32(header[1:])
	if int64(n) > int64(limit) || header[0] != 0 {
		return status.Errorf(codes.ResourceExhausted, "a request has %d bytes, the limit is %d, uncompressed", n, limit)
	}
	data, err := from.Read(int(n))
	if err != nil {
		return broken(err)
	}
	defer data.Free()
	return proto.Unmarshal(data.Materialize(), m)
}

// await notes that a request is due from now on.
func (s *stream) await() {
	if s.awaited.Load()%2 == 0 {
		s.awaited.Add(1)
	}
}

// awaitEnds notes that it has come, or need not come any more.
func (s *stream) awaitEnds() {
	if s.awaited.Load()%2 == 1 {
		s.awaited.Add(1)
	}
}

// next receives a request. io.EOF means that the client sends no more.
func (in *reading) next(ss grpc.ServerStream) error {
	if in.messages == nil {
		err := ss.RecvMsg(&in.incoming)
		if status.Code(err) == codes.ResourceExhausted {
			err = &refusal{ReasonRequest, status.Convert(err)}
		}
		in.stream.awaitEnds()
		if err == nil {
			err = in.charge()
		}
		return err
	}
	if err := in.messages.ReadMessageHeader(in.header[:]); err != nil {
		return broken(err)
	}
	in.stream.await()
	if err := in.charge(); err != nil {
		return err
	}
	return in.body(ss.Context())
}

// body receives the rest of a request that has begun, when there is a place for it, and reads it.
//
//go:noinline
func (in *reading) body(ctx context.Context) error {
	length, limit := binary.BigEndian.Uint32(in.header[1:]), in.server.limits.RequestBytes
	if int64(length) > int64(limit) {
		return &refusal{ReasonRequest, status.Newf(codes.ResourceExhausted, "a request has %d bytes, the limit is %d",
			length, limit)}
	}
	room := int(length)
	if in.header[0] != 0 {
		room = limit // it may be as large when it is decompressed
	}
	if err := in.server.reception.enter(ctx, room); err != nil {
		return broken(err)
	}
	defer in.server.reception.leave(room)
	if room > smallRequest {
		in.stream.awaitEnds() // its time begins with its place
		in.stream.await()
		in.stream.receiving.Store(true)
		defer in.stream.receiving.Store(false)
	}
	data, err := in.messages.Read(int(length))
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return broken(err)
	}
	in.stream.awaitEnds()
	if in.header[0] != 0 {
		if data, err = decompressed(data, in.messages.RecvCompress(), limit); err != nil {
			return err
		}
	}
	defer data.Free()
	return in.server.codec.Unmarshal(data, &in.incoming)
}

// broken returns an error of grpc's stream as a status, which nobody reads: the client is gone, or the stream was
// closed with another.
func broken(err error) error {
	if _, ok := status.FromError(err); ok || err == io.EOF {
		return err
	}
	return status.Errorf(codes.Unavailable, "the stream ended: %v", err)
}

// decompressed returns data without its compression, which the client chose for the whole stream.
func decompressed(data mem.BufferSlice, name string, limit int) (mem.BufferSlice, error) {
	defer data.Free()
	c := encoding.GetCompressor(name)
	if c == nil {
		return nil, status.Errorf(codes.Unimplemented, "requests are compressed with %q, which is not supported", name)
	}
	r, err := c.Decompress(data.Reader())
	if err != nil {
		return nil, status.Errorf(codes.Internal, "a request does not decompress: %v", err)
	}
	out, err := mem.ReadAll(io.LimitReader(r, int64(limit)+1), mem.DefaultBufferPool())
	if err != nil {
		out.Free()
		return nil, status.Errorf(codes.Internal, "a request does not decompress: %v", err)
	}
	if n := out.Len(); n > limit {
		out.Free()
		return nil, &refusal{ReasonRequest,
			status.Newf(codes.ResourceExhausted, "a request has more than %d bytes, which is the limit", limit)}
	}
	return out, nil
}
