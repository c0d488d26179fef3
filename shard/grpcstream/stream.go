package grpcstream

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotd/pilotd/encodecache"
)

const (
	// sendQuota is what grpc takes from a stream before SendMsg blocks: SendMsg waits while so many bytes or more are
	// not written, and whatever it is given when there are fewer it takes whole. TestQuota fails if that changes.
	sendQuota = 64 << 10
	// fewPieces is the most pieces of a response that its worker hands to grpc itself; each costs some 10 ns.
	fewPieces = 256
)

// stream is the sending side of one gRPC stream, a shard.Stream. See the package comment for who sends when.
type stream struct {
	// Immutable after newStream.
	id     uint64
	server *Server
	grpc   grpc.ServerStream

	// unsent are the bytes that grpc has been given and has not written, owed those and what waits for the writer.
	// Raised under mu, lowered by grpc's goroutines. When a stream has ended, they mean nothing: grpc does not tell of
	// all that it drops.
	unsent, owed atomic.Int64
	// progress counts the messages that grpc has written.
	progress atomic.Uint64
	// awaited counts the beginnings and the ends of waits for a request that is due: it is odd while the stream's first
	// request, or the rest of one that has begun, is to come. Raised by the reader.
	awaited atomic.Uint64
	// receiving is whether a large request has a place in reception. Set by the reader.
	receiving atomic.Bool

	// Owned by the idleWatch.
	readProgress readProgress

	// writer is done when no writer goroutine runs.
	writer sync.WaitGroup

	mu sync.Mutex
	// Guarded by mu.
	queue   []*encodecache.Response // waiting for the writer, oldest first
	held    int                     // their bytes
	writing bool                    // a writer runs, and nobody else may send
	ended   bool                    // nothing may be sent any more
	err     error                   // why, for the handler
}

// ID returns the number of the stream, never used again in this process.
func (s *stream) ID() uint64 { return s.id }

// Done returns a channel that is closed when the stream has ended: by its client, with its connection, or by Close.
func (s *stream) Done() <-chan struct{} { return s.grpc.Context().Done() }

// Send sends r after all that was sent before. It never blocks. A stream that has ended takes nothing.
func (s *stream) Send(_ string, r *encodecache.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
	case !s.writing && s.unsent.Load() < sendQuota && r.Pieces() <= fewPieces:
		s.owed.Add(int64(r.Len() + headerLen))
		s.server.stats.direct.Add(1)
		s.give(r)
	default:
		s.owed.Add(int64(r.Len() + headerLen))
		s.enqueue(r)
	}
}

// Backlogged reports whether something that was given to Send has not been written yet.
func (s *stream) Backlogged() bool { return s.owed.Load() > 0 }

// give hands r to grpc. The caller is the only one that sends: it holds mu while no writer runs, or it is the writer.
func (s *stream) give(r *encodecache.Response) {
	m := &message{response: r, stream: s}
	s.unsent.Add(m.len())
	// An error means that the stream is over, which its reader is told too.
	_ = s.grpc.SendMsg(m)
}

// written is told by grpc that a message of n bytes is out.
func (s *stream) written(n int64) {
	s.unsent.Add(-n)
	s.owed.Add(-n)
	s.progress.Add(1)
}

// enqueue leaves r to a writer, which it starts if there is none. The caller holds mu.
func (s *stream) enqueue(r *encodecache.Response) {
	s.queue = append(s.queue, r)
	s.held += r.Len()
	if limits := &s.server.limits; s.held > limits.HeldBytes {
		s.end(limits.held(s.held))
		return
	}
	if !s.writing {
		s.writing = true
		s.server.stats.writers.Add(1)
		s.writer.Go(s.write)
	}
}

// write is the writer goroutine: it sends what waits, and ends when nothing does.
func (s *stream) write() {
	defer func() {
		if v := recover(); v != nil {
			s.server.panicked("writing to a stream", v)
			s.mu.Lock()
			s.writing = false
			s.end(errFault())
			s.mu.Unlock()
		}
	}()
	for {
		s.mu.Lock()
		if len(s.queue) == 0 || s.ended {
			s.queue, s.held, s.writing = nil, 0, false
			s.mu.Unlock()
			return
		}
		r := s.queue[0]
		s.queue[0] = nil
		s.queue = s.queue[1:]
		s.held -= r.Len()
		s.mu.Unlock()
		s.server.stats.queued.Add(1)
		s.give(r) // may block until the client reads
	}
}

// Close ends the stream with err as its status. It never blocks; what waits is dropped.
func (s *stream) Close(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(err)
}

// end is Close for a caller that holds mu. Writing the status ends the stream's context, and with it the handler's
// RecvMsg and the writer's SendMsg, without a goroutine that waits for either.
func (s *stream) end(err error) {
	if s.ended {
		return
	}
	s.ended, s.err, s.queue, s.held = true, err, nil, 0
	s.server.stats.refuse(err) // before the client is told
	if w, ok := grpc.ServerTransportStreamFromContext(s.grpc.Context()).(statusWriter); ok {
		_ = w.WriteStatus(statusOf(err))
	}
}

// statusOf returns the status that tells err. A client that half-closes is content.
func statusOf(err error) *status.Status {
	if err == nil || errors.Is(err, io.EOF) {
		return status.New(codes.OK, "")
	}
	return status.Convert(err)
}

// statusWriter is what grpc's own stream is besides its public interface. TestClose fails if it is no longer so; then
// Close would take effect with the client's next request only.
type statusWriter interface {
	WriteStatus(*status.Status) error
}

// finish is called by the handler at its end: nothing is sent when it has returned, and no writer is left. It returns
// why the stream ended, which is err unless somebody ended it before.
func (s *stream) finish(err error) error {
	s.mu.Lock()
	s.end(err)
	err = s.err
	s.mu.Unlock()
	s.writer.Wait()
	return err
}
