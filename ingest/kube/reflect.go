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

// steady is how long reading a kind must have worked for the pause after the next failure to be short again.
const steady = time.Minute

// backoff returns the pauses between attempts: short at first, because most outages are short, and at most a few
// seconds.
func backoff() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Cap: 5 * time.Second,
		Steps: math.MaxInt32}
}

// reflect follows one resource until ctx ends. After each failure, panics included, it starts again after a growing
// pause.
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

// attempt lists and watches until that fails. It converts panics to errors.
func (s *Source) attempt(ctx context.Context, resource string, r *cache.Reflector) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = s.panicked("kind "+resource, cause)
		}
	}()
	return r.ListAndWatchWithContext(ctx)
}

// patient retries a watch while the server's address refuses connections or the server is overloaded. The reflector
// would do so too, but it would not stop when its context ends, and would not tell why it waits.
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

// streamless reports whether a server refused to stream the initial state in a watch. Then a list is used.
func streamless(o meta.ListOptions, err error) bool {
	return o.SendInitialEvents != nil && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err))
}

// complain records an error of reading a kind. An expired resource version is not one: the reflector lists again.
func (s *Source) complain(resource string, err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	s.outbox.failed(resource, err)
	s.log.Debug("cannot read", "resource", resource, "error", err)
}

// pause waits; it returns false if ctx ended.
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

// quieter lowers the level of what client-go logs by two: client-go logs every retry, and this package reports what
// users need to know.
type quieter struct{ slog.Handler }

// Enabled reports whether a record that client-go logs at level l is logged.
func (q quieter) Enabled(ctx context.Context, l slog.Level) bool { return q.Handler.Enabled(ctx, l-8) }

// Handle passes the record on at the lower level.
func (q quieter) Handle(ctx context.Context, r slog.Record) error {
	r.Level -= 8
	return q.Handler.Handle(ctx, r)
}

// WithAttrs keeps lowering levels.
func (q quieter) WithAttrs(a []slog.Attr) slog.Handler { return quieter{q.Handler.WithAttrs(a)} }

// WithGroup keeps lowering levels.
func (q quieter) WithGroup(name string) slog.Handler { return quieter{q.Handler.WithGroup(name)} }
