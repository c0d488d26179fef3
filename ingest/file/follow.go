package file

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// follow calls scan now, whenever something happens in a directory that scan asked to watch, and when scan asked to be called again. Events
// that come while a scan runs lead to one more scan. It returns when ctx ends.
//
// root's own parent is watched too, for root itself: it may be a symlink that is swapped, or not exist yet.
func follow(ctx context.Context, root string, log *slog.Logger, scan func(watch func(dir string)) (again time.Duration)) {
	w := newWatches(root, log)
	defer w.close()
	for {
		w.begin()
		again := scan(w.add)
		w.end()
		if w.blind {
			again = sooner(again, unwatched)
		}
		if !w.wait(ctx, again) {
			return
		}
	}
}

func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b < a {
		return b
	}
	return a
}

// watches is the set of directories that are watched.
type watches struct {
	// Immutable after newWatches.
	log     *slog.Logger
	notify  *fsnotify.Watcher // nil where the system has none left
	root    string            // absolute, not resolved
	parents map[string]bool   // watched for root's sake alone

	// Owned by the goroutine that calls follow.
	dirs  map[string]bool // watched; true when the scan under way asked for it
	blind bool            // something could not be watched
}

func newWatches(root string, log *slog.Logger) *watches {
	w := &watches{log: log, dirs: map[string]bool{}}
	notify, err := fsnotify.NewBufferedWatcher(256)
	if err != nil {
		log.Warn("cannot watch files; looking every second", "error", err)
		w.blind = true
		return w
	}
	w.notify = notify
	if w.root, err = filepath.Abs(root); err != nil {
		w.root = root
	}
	return w
}

func (w *watches) begin() {
	for dir := range w.dirs {
		w.dirs[dir] = false
	}
	w.parents = map[string]bool{}
	if parent := filepath.Dir(w.root); w.notify != nil {
		if real, err := filepath.EvalSymlinks(parent); err == nil {
			parent = real
		}
		w.add(parent)
		w.parents[parent] = true
	}
}

// add watches the directory behind path, before the scan reads it, so that nothing is missed between the two.
func (w *watches) add(path string) {
	if w.notify == nil {
		return
	}
	dir, err := realDir(path)
	if err != nil {
		return // The scan will see the same, and report it.
	}
	delete(w.parents, dir)
	if w.dirs[dir] {
		return
	}
	// Adding again is needed: the directory may be another one of the same name.
	if err := w.notify.Add(dir); err != nil {
		if !w.blind {
			w.log.Warn("cannot watch a directory; looking every second", "directory", dir, "error", err)
		}
		w.blind = true
		return
	}
	w.dirs[dir] = true
}

func (w *watches) end() {
	for dir, wanted := range w.dirs {
		if !wanted {
			_ = w.notify.Remove(dir) // It may be gone already.
			delete(w.dirs, dir)
		}
	}
}

func (w *watches) close() {
	if w.notify != nil {
		_ = w.notify.Close()
	}
}

// wait returns true when it is time for a scan: an event came, or again passed. It returns false when ctx ended.
func (w *watches) wait(ctx context.Context, again time.Duration) bool {
	var timer <-chan time.Time
	if again > 0 {
		timer = time.After(again)
	}
	var events chan fsnotify.Event
	var errs chan error
	if w.notify != nil {
		events, errs = w.notify.Events, w.notify.Errors
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer:
			return true
		case err := <-errs:
			// An overflow, in practice: events are lost, and a scan makes up for them.
			w.log.Warn("watching files", "error", err)
			return true
		case e := <-events:
			if w.concerns(e) {
				w.drain()
				return true
			}
		}
	}
}

// concerns reports whether an event may change what a scan sees.
func (w *watches) concerns(e fsnotify.Event) bool {
	return !w.parents[filepath.Dir(e.Name)] || filepath.Base(e.Name) == filepath.Base(w.root)
}

// drain takes the events that are there already: the scan to come covers them.
func (w *watches) drain() {
	for {
		select {
		case <-w.notify.Events:
		default:
			return
		}
	}
}
