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
	// pagesAtOnce is how many debug pages are made at once: each may hold all that is known of the mesh.
	pagesAtOnce = 2
	// patience is how long a request for a page waits for its turn.
	patience = 10 * time.Second
	// writeTime is how long a client may take to read a page that is made.
	writeTime = time.Minute
)

// turns bounds how many pages are made at once. Its capacity is how many.
type turns chan struct{}

// take waits for a turn; false when there was none in time, or the client left.
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

// page serves one page. The turn ends when the content is made: a client that reads slowly keeps nobody waiting.
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
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // Not every writer has one.
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(content) // The client may have left.
	})
}

// make returns a page's content in JSON, or the status with which it fails. It ends the turn, also when the page
// panics.
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

// containment answers 500 where a handler panics, counts that, and logs the first panic of each path with its stack.
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
	page := strings.TrimPrefix(r.Pattern, "GET ") // One of those that are served: what a client asks for is no label.
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
