package discovery

import (
	"log/slog"
	"strings"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/pilotd/pilotd/shard"
)

const (
	// refusalRate bounds how many refusals are logged in a second in the long run, refusalBurst how many at once: a
	// client can refuse as often as it likes.
	refusalRate  = 5
	refusalBurst = 50
	// maxNamed bounds the refused resources that one line names.
	maxNamed = 10
)

// refusalLog logs some of the refusals of clients. Workers call it.
type refusalLog struct {
	// Immutable after newRefusalLog.
	log   *slog.Logger
	limit *rate.Limiter

	silent atomic.Int64 // refusals since the last one that was logged
}

func newRefusalLog(log *slog.Logger) *refusalLog {
	return &refusalLog{log: log, limit: rate.NewLimiter(refusalRate, refusalBurst)}
}

// tell logs r, or counts it for the next line.
func (l *refusalLog) tell(r *shard.Refusal) {
	if !l.limit.Allow() {
		l.silent.Add(1)
		return
	}
	args := []any{"proxy", r.Proxy.ID, "type", short(r.Type), "resources",
		strings.Join(r.Names[:min(len(r.Names), maxNamed)], " "), "error", r.Message}
	if more := len(r.Names) - maxNamed; more > 0 {
		args = append(args, "moreResources", more)
	}
	if n := l.silent.Swap(0); n > 0 {
		args = append(args, "refusalsNotLogged", n)
	}
	l.log.Warn("a client refused resources", args...)
}
