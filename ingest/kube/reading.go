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
	// defaultGrace is how long a kind that pilotd can do without is waited for once the others are there.
	defaultGrace = 20 * time.Second
	// maxGraces is after how many graces such a kind is waited for no longer, though its objects keep coming.
	maxGraces = 10
	// settled is how long a kind has to fail before that is reported, and to be read before that is taken back. Most
	// outages are shorter.
	settled = 5 * time.Second
	// maxReason bounds what is kept of an error, in bytes: servers answer with whole web pages.
	maxReason = 300
)

// need says what follows when a kind cannot be read.
type need struct {
	// optional says that pilotd serves without the kind after a grace. loss is what is lost then.
	optional bool
	loss     string
	// excused says that the kind is not waited for when it may not be read: a role of one namespace has no such right.
	excused bool
}

// reading is how the reading of one kind goes. It decides purely; the outbox holds it and tells what it decides.
type reading struct {
	// Immutable after expect.
	source string
	kind   value.ObjectKey // the kind and the cluster alone
	need

	// Guarded by the outbox's mu.
	waiting  bool      // the first list has not come, and Synced waits for it
	since    time.Time // when waiting began
	progress time.Time // when an object came last
	failing  time.Time // when failures began; zero when there is none
	reason   string    // the last of them
	denied   bool      // it said that pilotd may not read
	reported bool      // failures are reported
	watching time.Time // since when changes are told; zero while they are not
}

// fail takes note of an error.
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

// due reports whether failures are to be reported now.
func (r *reading) due(now time.Time) bool {
	return !r.reported && !r.failing.IsZero() && (r.denied || now.Sub(r.failing) >= settled)
}

// healed reports whether a report is to be taken back now.
func (r *reading) healed(now time.Time) bool {
	return !r.waiting && !r.failing.IsZero() && !r.watching.IsZero() && now.Sub(r.watching) >= settled
}

// overdue reports whether the kind is waited for no longer. others is when all kinds that pilotd needs had come.
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

// rejection returns the report of failures.
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

// text says what is waited for, since when and why.
func (r *reading) text(resource string, now time.Time) string {
	why := "no answer yet"
	if r.reason != "" {
		why = r.reason
	}
	return fmt.Sprintf("%s since %s (%v): %s", resource, r.since.UTC().Format(time.RFC3339),
		now.Sub(r.since).Round(time.Second), why)
}

// reasonOf returns an error's text in one line of limited length.
func reasonOf(err error) string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(err.Error(), "?")), " ")
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "..."
	}
	return text
}
