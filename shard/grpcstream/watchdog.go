package grpcstream

import (
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// watchdog cuts a stream off if its writer is stuck: a whole Stuck limit passes in which not one message is written.
type watchdog struct {
	// Immutable after watch.
	stream *stream

	mu sync.Mutex
	// Guarded by mu.
	seen    uint64 // the stream's progress when the timer was set
	cancel  func() bool
	stopped bool
}

// watch begins to watch the writer of s, until stop.
func watch(s *stream) *watchdog {
	w := &watchdog{stream: s}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arm()
	return w
}

// arm sets the timer. The caller holds mu.
func (w *watchdog) arm() {
	o := &w.stream.server.options
	w.seen = w.stream.progress.Load()
	if o.Stuck > 0 && o.AfterFunc != nil {
		w.cancel = o.AfterFunc(o.Stuck, w.check)
	}
}

// check is called when the time has passed.
func (w *watchdog) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stream
	switch {
	case w.stopped:
	case s.progress.Load() != w.seen:
		w.arm()
	default:
		s.server.stats.stuck.Add(1)
		s.Close(status.Errorf(codes.DeadlineExceeded, "the client has not read a response for %v", s.server.options.Stuck))
		s.disconnect()
	}
}

func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.cancel != nil {
		w.cancel()
	}
}
