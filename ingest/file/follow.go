package file

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// inspector is called by follow to look at files.
type inspector interface {
	// scan looks at the whole tree. It calls watch for each directory, with the path under which its files are known,
	// or "" if events in that directory must lead to another scan.
	scan(watch func(dir, path string)) next
	// inspect looks at the files of those paths, where events occurred, and at those that it asked to look at again. It
	// returns false if only a scan can tell what happened.
	inspect(paths []string) (next, bool)
}

// next tells follow what to do if no event occurs.
type next struct {
	// after is when to look again; 0 means never.
	after time.Duration
	// scan asks for a scan, not an inspection.
	scan bool
}

// follow calls scan now, then inspect whenever something happens in a watched directory or the time that they asked for
// has passed. Events that occur during a call lead to one more call. It returns when ctx ends.
//
// It also watches the parent of root: root may be a symlink that is replaced, or may not exist yet.
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

// watches is the set of watched directories.
type watches struct {
	// Immutable after newWatches.
	log    *slog.Logger
	notify *fsnotify.Watcher // nil if the system has no more of them
	root   string            // absolute path with symlinks unresolved

	// Owned by the goroutine that calls follow.
	dirs    map[string]watched
	parents map[string]bool // watched only to notice root itself
	blind   bool            // some directory could not be watched
}

// watched is one watched directory.
type watched struct {
	wanted bool // the present scan asked for it
	// path is the path under which its files are known; "" if it has several, or none.
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

// add watches the directory that dir resolves to. The scan calls it before reading the directory, so that no change in
// between is missed.
func (w *watches) add(dir, path string) {
	if w.notify == nil {
		return
	}
	real, err := realDir(dir)
	if err != nil {
		return // the scan meets the same error and reports it
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
	// Add it again even if it is known: it may be another directory of the same name.
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
			_ = w.notify.Remove(dir) // it may no longer exist
			delete(w.dirs, dir)
		}
	}
}

func (w *watches) close() {
	if w.notify != nil {
		_ = w.notify.Close()
	}
}

// wait returns when events occur, with their paths, or when it is time for n. scan says that a scan is needed; ok is
// false once ctx has ended.
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
			// In practice an overflow: events were lost, so a scan has to find the changes.
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

// concerns reports whether an event may change the result of a scan.
func (w *watches) concerns(e fsnotify.Event) bool {
	return !w.parents[filepath.Dir(e.Name)] || filepath.Base(e.Name) == filepath.Base(w.root)
}

// drain collects the events that have already arrived, and returns their paths, or that a scan is needed.
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
