package file

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// inspector looks at files when it is told that it is time to.
type inspector interface {
	// scan looks at everything. It asks to watch directories, each with the path by which its files are known; without
	// one, whatever happens there asks for a scan.
	scan(watch func(dir, path string)) next
	// inspect looks at the files of those paths, where something happened, and at those that it wanted to look at again.
	// It reports false when only a scan can tell what happened.
	inspect(paths []string) (next, bool)
}

// next says what is to be done without an event.
type next struct {
	// after says when to look again; 0 is never.
	after time.Duration
	// scan says that it is to be a scan.
	scan bool
}

// follow calls scan now, and inspect whenever something happens in a directory that scan asked to watch, and when they
// asked to be called again. Events that come meanwhile lead to one more call. It returns when ctx ends.
//
// root's own parent is watched too, for root itself: it may be a symlink that is swapped, or not exist yet.
func follow(ctx context.Context, root string, log *slog.Logger, l inspector) {
	w := newWatches(root, log)
	defer w.close()
	for {
		w.begin()
		n := l.scan(w.add)
		w.end()
		for inspected := true; inspected; {
			if w.blind {
				n = next{after: sooner(n.after, unwatched), scan: true}
			}
			paths, scan, ok := w.wait(ctx, n)
			if !ok {
				return
			}
			if inspected = !scan; inspected {
				n, inspected = l.inspect(paths)
			}
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
	log    *slog.Logger
	notify *fsnotify.Watcher // nil where the system has none left
	root   string            // absolute, not resolved

	// Owned by the goroutine that calls follow.
	dirs    map[string]watched
	parents map[string]bool // watched for root's sake alone
	blind   bool            // something could not be watched
}

// watched is one directory.
type watched struct {
	wanted bool // the scan under way asked for it
	// path is that by which its files are known; "" where there are several, or none.
	path string
}

func newWatches(root string, log *slog.Logger) *watches {
	w := &watches{log: log, dirs: map[string]watched{}}
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
		w.dirs[dir] = watched{}
	}
	w.parents = map[string]bool{}
	if parent := filepath.Dir(w.root); w.notify != nil {
		if real, err := filepath.EvalSymlinks(parent); err == nil {
			parent = real
		}
		w.add(parent, "")
		w.parents[parent] = true
	}
}

// add watches the directory behind dir, before the scan reads it, so that nothing is missed between the two.
func (w *watches) add(dir, path string) {
	if w.notify == nil {
		return
	}
	real, err := realDir(dir)
	if err != nil {
		return // The scan will see the same, and report it.
	}
	at := w.dirs[real]
	if w.parents[real] {
		at.wanted = false
		delete(w.parents, real)
	}
	if at.wanted {
		if at.path != path {
			w.dirs[real] = watched{wanted: true}
		}
		return
	}
	// Adding again is needed: the directory may be another one of the same name.
	if err := w.notify.Add(real); err != nil {
		if !w.blind {
			w.log.Warn("cannot watch a directory; looking every second", "directory", real, "error", err)
		}
		w.blind = true
		return
	}
	w.dirs[real] = watched{wanted: true, path: path}
}

func (w *watches) end() {
	for dir, at := range w.dirs {
		if !at.wanted {
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

// wait returns when something happened, with the paths where, or when it is time for n. scan says that a scan is
// needed; ok is false when ctx ended.
func (w *watches) wait(ctx context.Context, n next) (paths []string, scan, ok bool) {
	var timer <-chan time.Time
	if n.after > 0 {
		timer = time.After(n.after)
	}
	var events chan fsnotify.Event
	var errs chan error
	if w.notify != nil {
		events, errs = w.notify.Events, w.notify.Errors
	}
	for {
		select {
		case <-ctx.Done():
			return nil, false, false
		case <-timer:
			return nil, n.scan, true
		case err := <-errs:
			// An overflow, in practice: events are lost, and a scan makes up for them.
			w.log.Warn("watching files", "error", err)
			return nil, true, true
		case e := <-events:
			if w.concerns(e) {
				paths, scan = w.drain(e)
				return paths, scan, true
			}
		}
	}
}

// concerns reports whether an event may change what a scan sees.
func (w *watches) concerns(e fsnotify.Event) bool {
	return !w.parents[filepath.Dir(e.Name)] || filepath.Base(e.Name) == filepath.Base(w.root)
}

// drain takes the events that are there already, and says where they happened, or that a scan is needed.
func (w *watches) drain(e fsnotify.Event) (paths []string, scan bool) {
	found := map[string]bool{}
	for {
		if w.concerns(e) {
			path := w.dirs[filepath.Dir(e.Name)].path
			scan = scan || path == ""
			found[filepath.Join(path, filepath.Base(e.Name))] = true
		}
		select {
		case e = <-w.notify.Events:
		default:
			return sortedKeys(found), scan
		}
	}
}
