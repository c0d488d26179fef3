package status

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// pagesAtOnce bounds the debug pages that are made at the same time, because each may contain everything about the
	// mesh.
	pagesAtOnce = 2
	// patience bounds how long a request waits for its turn.
	patience = 10 * time.Second
	// writeTime bounds how long a client may take to read a finished page.
	writeTime = time.Minute
)

// turns bounds the pages that are made at the same time, by its capacity.
type turns chan struct{}

// take waits for a turn. It returns false if none came in time, or the client has left.
func (t turns) take(r *http.Request) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case t <- struct{}{}:
		return true
	case <-timer.C:
	case <-r.Context().Done():
	}
	return false
}

func (t turns) leave() { <-t }

// page serves one page. The turn ends when the content is complete, so a client that reads slowly delays nobody.
func (t turns) page(page Page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !t.take(r) {
			w.Header().Set("Retry-After", "10")
			http.Error(w, "other debug pages are being made: try again", http.StatusServiceUnavailable)
			return
		}
		content, status, err := t.make(page, r)
		if err != nil {
			http.Error(w, err.Error(), status)
			return
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // some writers have no deadline
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(content) // fails if the client has left
	})
}

// make returns a page's content as JSON, or the error and its HTTP status. It ends the turn, even if the page panics.
func (t turns) make(page Page, r *http.Request) (content []byte, status int, err error) {
	defer t.leave()
	value, err := page(r)
	if err != nil {
		return nil, http.StatusBadRequest, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	if err := e.Encode(value); err != nil {
		return nil, http.StatusInternalServerError, err
	}
	return b.Bytes(), 0, nil
}

// containment answers 500 if a handler panics, counts the panic, and logs the first one of each path with its stack.
type containment struct {
	// Immutable after Handler.
	next  http.Handler
	log   *slog.Logger
	count *prometheus.CounterVec

	mu sync.Mutex
	// Guarded by mu.
	logged map[string]bool // by pattern
}

// ServeHTTP implements http.Handler.
func (c *containment) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if cause := recover(); cause != nil {
			if cause == http.ErrAbortHandler {
				panic(cause)
			}
			c.contain(w, r, cause)
		}
	}()
	c.next.ServeHTTP(w, r)
}

func (c *containment) contain(w http.ResponseWriter, r *http.Request, cause any) {
	// The pattern, because a path that clients choose must not become a label
	page := strings.TrimPrefix(r.Pattern, "GET ")
	c.count.WithLabelValues(page).Inc()
	c.mu.Lock()
	first := !c.logged[page]
	c.logged[page] = true
	c.mu.Unlock()
	if first {
		c.log.Error("a page panicked; it is logged once", "page", page, "query", clip(r.URL.RawQuery), "panic", cause,
			"stack", string(debug.Stack()))
	}
	http.Error(w, "this page failed: a fault of pilotd, which its log tells of", http.StatusInternalServerError)
}
