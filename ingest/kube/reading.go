package kube

import (
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot/value"
)

const (
	// defaultGrace is how long Synced waits for an optional kind after the required ones have arrived.
	defaultGrace = 20 * time.Second
	// maxGraces bounds that wait, in graces, for a kind whose objects keep arriving.
	maxGraces = 10
	// settled is how long a kind must fail before that is reported, and must be read again before the report is
	// withdrawn. Most outages are shorter.
	settled = 5 * time.Second
	// maxReason bounds the text kept of an error, in bytes: servers answer with whole web pages.
	maxReason = 300
)

// need says what happens if a kind cannot be read.
type need struct {
	// optional says that pilotd starts without the kind after a grace. loss says what users lose then.
	optional bool
	loss     string
	// excused says not to wait for the kind if reading it is forbidden, because a role in one namespace cannot have
	// that right.
	excused bool
}

// reading is the state of reading one kind. It only decides; the outbox holds it and acts on its decisions.
type reading struct {
	// Immutable after expect.
	source string
	kind   value.ObjectKey // kind and cluster only
	need

	// Guarded by the outbox's mu.
	waiting  bool      // Synced waits for the first list, which has not arrived
	since    time.Time // when waiting began
	progress time.Time // when the last object arrived
	failing  time.Time // when the present failures began; zero if there are none
	reason   string    // the last error
	denied   bool      // the last error was that pilotd lacks the right
	reported bool      // the failures have been reported
	watching time.Time // when the watch started; zero while there is none
}

// fail records an error.
func (r *reading) fail(now time.Time, err error) {
	if r.failing.IsZero() || !r.watching.IsZero() && now.Sub(r.watching) >= settled {
		r.failing = now
	}
	r.watching = time.Time{}
	r.denied = apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
	r.reason = reasonOf(err)
	if r.denied {
		r.reason += ": expected the right to list and watch"
	}
}

// due reports whether it is time to report the failures.
func (r *reading) due(now time.Time) bool {
	return !r.reported && !r.failing.IsZero() && (r.denied || now.Sub(r.failing) >= settled)
}

// healed reports whether it is time to withdraw the report.
func (r *reading) healed(now time.Time) bool {
	return !r.waiting && !r.failing.IsZero() && !r.watching.IsZero() && now.Sub(r.watching) >= settled
}

// overdue reports whether to stop waiting for the kind. others is when the required kinds had all arrived.
func (r *reading) overdue(now, others time.Time, grace time.Duration) bool {
	if r.excused && r.denied {
		return true
	}
	from := r.since
	if others.After(from) {
		from = others
	}
	last := from
	if r.progress.After(last) {
		last = r.progress
	}
	return now.Sub(last) >= grace || now.Sub(from) >= maxGraces*grace
}

// rejection returns the report of the failures.
func (r *reading) rejection() *ingest.Rejection {
	reason := "cannot be read: " + r.reason
	if r.optional {
		reason += "; until it can, " + r.loss
	} else {
		reason += "; what was read before stays in force"
	}
	return &ingest.Rejection{Source: r.source, Key: r.kind, Cause: report.Unavailable,
		Reason: reason}
}

// text describes the wait: since when and why.
func (r *reading) text(resource string, now time.Time) string {
	why := "no answer yet"
	if r.reason != "" {
		why = r.reason
	}
	return fmt.Sprintf("%s since %s (%v): %s", resource, r.since.UTC().Format(time.RFC3339),
		now.Sub(r.since).Round(time.Second), why)
}

// reasonOf returns an error's text as one line of limited length.
func reasonOf(err error) string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(err.Error(), "?")), " ")
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "..."
	}
	return text
}
