package report

import "time"

const (
	// burst is how many log lines may be written at once.
	burst = 200
	// interval is the time after which one more line is allowed.
	interval = 100 * time.Millisecond
)

// limiter is a token bucket for log lines, so that thousands of bad objects at once do not fill the log. The page lists
// all of them.
type limiter struct {
	used   int
	since  time.Time // the time at which used was computed
	missed int
}

// allow reports whether a line may be written now, and how many were left out since the last one that was written.
func (l *limiter) allow(now time.Time) (ok bool, missed int) {
	if back := int(now.Sub(l.since) / interval); back > 0 {
		l.used = max(0, l.used-back)
		l.since = now
	}
	if l.used >= burst {
		l.missed++
		return false, 0
	}
	l.used++
	missed, l.missed = l.missed, 0
	return true, missed
}
