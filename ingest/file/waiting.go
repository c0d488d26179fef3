package file

import "sync/atomic"

// maxListed bounds the files that Waiting lists.
const maxListed = 10

// waiting describes what Synced waits for. The goroutine that calls Run writes it, and any goroutine may read it. The
// zero value says that nothing has been read yet.
type waiting struct{ what atomic.Pointer[[]string] }

func (w *waiting) set(what []string) { w.what.Store(&what) }

func (w *waiting) list() []string {
	if what := w.what.Load(); what != nil {
		return *what
	}
	return []string{"a first look"}
}
