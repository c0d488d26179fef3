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

// backoff is how a reader waits between attempts: soon at first, for most outages are short, and never longer than a few seconds.
func backoff() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Cap: 5 * time.Second, Steps: math.MaxInt32}
}

// reflect follows one resource until ctx ends.
func (s *Source) reflect(ctx context.Context, resource string, lw *cache.ListWatch, store cache.ReflectorStore) {
	lw.WatchFuncWithContext = s.patient(resource, lw.WatchFuncWithContext)
	logger, delay := klog.FromContext(ctx), backoff()
	r := cache.NewReflectorWithOptions(lw, nil, store, cache.ReflectorOptions{
		Logger: &logger, Name: resource, TypeDescription: resource, Backoff: &delay,
	})
	r.RunWithContext(ctx)
}

// patient repeats a watch while nobody listens at the server's address or the server is overloaded. The reflector would do so too, but
// goes on waiting when it is told to end, and says nothing.
func (s *Source) patient(resource string, follow cache.WatchFuncWithContext) cache.WatchFuncWithContext {
	return func(ctx context.Context, o meta.ListOptions) (watch.Interface, error) {
		delay := backoff()
		for attempt := 0; ; attempt++ {
			w, err := follow(ctx, o)
			if err == nil || !utilnet.IsConnectionRefused(err) && !apierrors.IsTooManyRequests(err) {
				s.complain(ctx, resource, err)
				return w, err
			}
			if attempt == 0 {
				s.log.Warn("API server is away; what was read stays in force", "resource", resource, "error", err)
			}
			if !pause(ctx, delay.Step()) {
				return nil, ctx.Err()
			}
		}
	}
}

// complain names what only the cluster's administrator can mend.
func (s *Source) complain(ctx context.Context, resource string, err error) {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		s.log.Error("API server refuses: expected the right to list and watch", "resource", resource, "error", err)
	} else if err != nil && ctx.Err() == nil {
		s.log.Debug("watch", "resource", resource, "error", err)
	}
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

// quieter makes what client-go logs two levels less important: it logs every retry, and who has to know is told by this package.
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
