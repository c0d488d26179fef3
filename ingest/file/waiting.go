package file

import "sync/atomic"

// maxListed is how many files are listed that are waited for.
const maxListed = 10

// waiting is what a source waits for, in words. It is written by the goroutine that calls Run and read by everybody.
// The zero value says that nothing was inspected at yet.
type waiting struct{ what atomic.Pointer[[]string] }

func (w *waiting) set(what []string) { w.what.Store(&what) }

func (w *waiting) list() []string {
	if what := w.what.Load(); what != nil {
		return *what
	}
	return []string{"a first look"}
}
