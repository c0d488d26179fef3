package kube

import (
	"context"
	"log/slog"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// steady is how long a kind has to be read for its next failure to count as the first.
const steady = time.Minute

// backoff returns how a reader waits between attempts: soon at first, for most outages are short, and never longer than
// a few seconds.
func backoff() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Cap: 5 * time.Second,
		Steps: math.MaxInt32}
}

// reflect follows one resource until ctx ends. It begins again after every failure, with a pause that grows; a panic is
// a failure too.
func (s *Source) reflect(ctx context.Context, resource string, lw *cache.ListWatch, store cache.ReflectorStore) {
	lw.WatchFuncWithContext = s.patient(resource, lw.WatchFuncWithContext)
	logger, delay := klog.FromContext(ctx), backoff()
	for ctx.Err() == nil {
		began, pauses := time.Now(), backoff()
		r := cache.NewReflectorWithOptions(lw, nil, store, cache.ReflectorOptions{
			Logger: &logger, Name: resource, TypeDescription: resource, Backoff: &pauses,
		})
		for err := error(nil); err == nil && ctx.Err() == nil; {
			if err = s.attempt(ctx, resource, r); err != nil && ctx.Err() == nil {
				s.complain(resource, err)
			}
			if time.Since(began) > steady {
				delay = backoff()
			}
			began = time.Now()
			if !pause(ctx, delay.Step()) {
				return
			}
		}
	}
}

// attempt lists and watches until that fails. It contains panics of what reads objects.
func (s *Source) attempt(ctx context.Context, resource string, r *cache.Reflector) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = s.panicked("kind "+resource, cause)
		}
	}()
	return r.ListAndWatchWithContext(ctx)
}

// patient repeats a watch while nobody listens at the server's address or the server is overloaded. The reflector would
// do so too, but goes on waiting when it is told to end, and says nothing.
func (s *Source) patient(resource string, follow cache.WatchFuncWithContext) cache.WatchFuncWithContext {
	return func(ctx context.Context, o meta.ListOptions) (watch.Interface, error) {
		delay := backoff()
		for attempt := 0; ; attempt++ {
			w, err := follow(ctx, o)
			if err == nil {
				s.outbox.watching(resource)
				return w, nil
			}
			if !utilnet.IsConnectionRefused(err) && !apierrors.IsTooManyRequests(err) {
				if !streamless(o, err) && ctx.Err() == nil {
					s.complain(resource, err)
				}
				return nil, err
			}
			s.outbox.failed(resource, err)
			if attempt == 0 {
				s.log.Warn("API server is away; what was read stays in force", "resource", resource, "error", err)
			}
			if !pause(ctx, delay.Step()) {
				return nil, ctx.Err()
			}
		}
	}
}

// streamless reports whether a server said that its watches do not begin with what there is. A list does instead.
func streamless(o meta.ListOptions, err error) bool {
	return o.SendInitialEvents != nil && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err))
}

// complain takes note of an error that a kind is not read for. That a version is too old to go on from is none.
func (s *Source) complain(resource string, err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	s.outbox.failed(resource, err)
	s.log.Debug("cannot read", "resource", resource, "error", err)
}

// pause waits; false when ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// quieter makes what client-go logs two levels less important: it logs every retry, and who has to know is told by this
// package.
type quieter struct{ slog.Handler }

// Enabled is asked with the level that client-go gave.
func (q quieter) Enabled(ctx context.Context, l slog.Level) bool { return q.Handler.Enabled(ctx, l-8) }

// Handle passes the record on at the lower level.
func (q quieter) Handle(ctx context.Context, r slog.Record) error {
	r.Level -= 8
	return q.Handler.Handle(ctx, r)
}

// WithAttrs keeps the levels low.
func (q quieter) WithAttrs(a []slog.Attr) slog.Handler { return quieter{q.Handler.WithAttrs(a)} }

// WithGroup keeps the levels low.
func (q quieter) WithGroup(name string) slog.Handler { return quieter{q.Handler.WithGroup(name)} }
