package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/ingest/crd"
	"github.com/pilotd/pilotd/snapshot/value"
)

const (
	// soon is how long a vanished file may take to come back, and the longest interval between two looks at one that is
	// being written.
	soon = 20 * time.Millisecond
	// unwatched is the interval of scans if the tree cannot be watched.
	unwatched = time.Second
)

// Options say what to read and whom to tell.
type Options struct {
	// Dir is the directory. The path given here is the name of the source and the prefix of every Where.
	Dir string
	// Sink receives the objects.
	Sink ingest.Sink
	// RootNamespace and MeshConfigMap name the ConfigMap whose key "mesh" is the mesh configuration: "istio-system" and
	// "istio" when empty.
	RootNamespace, MeshConfigMap string
	// Log is slog.Default() when nil.
	Log *slog.Logger
}

// Source reads a directory.
type Source struct {
	// Immutable after New.
	dir  string
	sink ingest.Sink
	log  *slog.Logger
	rules
	// blind disables asking the system who writes; tests set it before Run.
	blind bool

	// Owned by the goroutine that calls Run.
	files       map[string]*content // by path
	order       order
	definitions definitions
	inForce     map[value.ObjectKey]sent
	failed      map[string]error     // paths that could not be read, with the reason
	reported    map[string][]problem // by path
	changes     changes
	// dirs and plain describe the tree of the last scan. lost says that it had no root.
	dirs        map[string]bool
	plain, lost bool
	// unsettled are files that were being written or had vanished; tries counts how often they were inspected since.
	unsettled map[string]bool
	tries     int
	synced    bool
	waiting   waiting // for Waiting, which any goroutine may call
	skipped   int     // number of objects of kinds that pilotd does not use
}

// New returns the source of a directory. The directory need not exist yet; Synced waits for it.
func New(o Options) *Source {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Source{
		dir:  filepath.Clean(o.Dir),
		sink: o.Sink,
		log:  o.Log.With("source", o.Dir),
		rules: rules{
			kinds: ingest.NewKindTable(),
			mesh: value.ObjectKey{Kind: value.KindMeshConfig, Namespace: or(o.RootNamespace, "istio-system"),
				Name: or(o.MeshConfigMap, "istio")},
			schemas: crd.New(),
		},
		files:       map[string]*content{},
		definitions: definitions{},
		inForce:     map[value.ObjectKey]sent{},
		reported:    map[string][]problem{},
		changes:     newChanges(),
		unsettled:   map[string]bool{},
	}
}

// Name returns the name of the source in events.
func (s *Source) Name() string { return s.dir }

// Waiting says what Synced waits for; empty once Synced has been called. Any goroutine may call it.
func (s *Source) Waiting() []string { return s.waiting.list() }

// Run reads the directory and follows it until ctx ends, and then returns nil.
func (s *Source) Run(ctx context.Context) error {
	follow(ctx, s.dir, s.log, s)
	return nil
}

// scan reads the whole tree and tells the sink what changed.
func (s *Source) scan(watch func(dir, path string)) next {
	t, now := walk(s.dir, watch), time.Now()
	s.tries = 0
	clear(s.unsettled)
	present := make(map[string]bool, len(t.files))
	for _, f := range t.files {
		present[f.path] = true
		s.read(f.path, f.info)
	}
	for path, c := range s.files {
		if t.unreadable(path) {
			s.found(c)
		} else if !present[path] {
			s.missing(c, now)
		}
	}
	for _, failed := range []map[string]error{s.failed, t.failed} {
		for path := range failed {
			s.changes.paths[path] = struct{}{}
		}
	}
	s.failed, s.dirs, s.plain, s.lost = t.failed, t.dirs, t.plain, t.err != nil
	return s.tell()
}

// inspect reads the files of those paths and the unsettled ones, and tells the sink what changed.
func (s *Source) inspect(paths []string) (next, bool) {
	if !s.plain || s.lost {
		return next{}, false
	}
	if s.tries++; len(paths) > 0 {
		s.tries = 0
	}
	for _, path := range paths {
		s.unsettled[path] = true
	}
	now, all := time.Now(), sortedKeys(s.unsettled)
	clear(s.unsettled)
	for _, path := range all {
		if !s.inspectPath(path, now) {
			return next{}, false // the scan reports what has changed so far
		}
	}
	return s.tell(), true
}

// inspectPath looks at one path. It returns false if what happened is more than that one file came, changed or went.
func (s *Source) inspectPath(path string, now time.Time) bool {
	if strings.HasPrefix(filepath.Base(path), ".") {
		return true
	}
	c := s.files[path]
	info, err := os.Lstat(path)
	switch {
	case s.dirs[path]:
		return false
	case errors.Is(err, fs.ErrNotExist) && c == nil:
		return true
	case errors.Is(err, fs.ErrNotExist):
		s.missing(c, now)
		_, err := os.Lstat(filepath.Dir(path))
		return err == nil
	case err != nil || info.IsDir() || info.Mode()&fs.ModeSymlink != 0:
		return false
	case !readable(path):
		return true
	case !info.Mode().IsRegular() || linked(info):
		return false
	}
	s.read(path, info)
	return true
}

// tell tells the sink what changed, and returns when to look again.
func (s *Source) tell() next {
	s.hand()
	if !s.synced {
		s.waiting.set(s.missingYet())
	}
	if s.lost {
		return next{after: unwatched, scan: true} // there may be no directory yet that could be watched
	}
	if len(s.unsettled) > 0 {
		return next{after: min(time.Millisecond<<min(s.tries, 10), soon)}
	}
	if !s.synced {
		s.synced = true
		s.waiting.set(nil)
		s.sink.Synced(s.dir)
	}
	return next{}
}

// missingYet says why the source is not synced yet.
func (s *Source) missingYet() (out []string) {
	if err, ok := s.failed[s.dir]; ok && s.lost {
		out = append(out, fmt.Sprintf("the directory, which cannot be read: %v", err))
	}
	for _, path := range sortedKeys(s.unsettled) {
		if out = append(out, path+", which is being written"); len(out) == maxListed {
			break
		}
	}
	return out
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// realDir returns the resolved directory of the file that path resolves to.
func realDir(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		real = filepath.Dir(real)
	}
	return real, nil
}
