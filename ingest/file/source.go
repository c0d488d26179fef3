package file

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

const (
	// soon is when a file that was being written, or that vanished, is looked at again.
	soon = 20 * time.Millisecond
	// unwatched is how often the tree is looked at where it cannot be watched.
	unwatched = time.Second
)

// Options say what to read and whom to tell.
type Options struct {
	// Dir is the directory. Its path as given here is the name of the source and the beginning of every Where.
	Dir string
	// Sink takes the objects.
	Sink ingest.Sink
	// RootNamespace and MeshConfigMap name the ConfigMap whose key "mesh" is the mesh configuration: "istio-system" and "istio" when empty.
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
	mesh value.ObjectKey // of the ConfigMap

	// Owned by the goroutine that calls Run.
	files    map[string]*content // by path
	inForce  map[value.ObjectKey]*object
	reported map[string][]problem // by place
	synced   bool
	skipped  int
}

// New makes the source of a directory. The directory need not exist yet: nothing is synced until it does.
func New(o Options) *Source {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Source{
		dir:      filepath.Clean(o.Dir),
		sink:     o.Sink,
		log:      o.Log.With("source", o.Dir),
		mesh:     value.ObjectKey{Kind: value.KindMeshConfig, Namespace: or(o.RootNamespace, "istio-system"), Name: or(o.MeshConfigMap, "istio")},
		files:    map[string]*content{},
		inForce:  map[value.ObjectKey]*object{},
		reported: map[string][]problem{},
	}
}

// Name is the name that the source's events carry.
func (s *Source) Name() string { return s.dir }

// Run reads the directory and follows it until ctx ends. It returns nil then; nothing else ends it.
func (s *Source) Run(ctx context.Context) error {
	follow(ctx, s.dir, s.log, s.scan)
	return nil
}

// scan brings the sink up to date with the tree. The result says what is to be watched, and when to look again without an event.
func (s *Source) scan(watch func(dir string)) (again time.Duration) {
	t := walk(s.dir, watch)
	again = s.read(t)
	objects, problems := merge(t, s.files, len(s.inForce))
	s.report(problems)
	if events := s.diff(objects); len(events) > 0 {
		s.sink.Apply(events)
		s.log.Debug("directory read", "files", len(t.files), "changed", len(events), "skipped", s.skipped)
	}
	if t.err != nil {
		return sooner(again, unwatched) // There may be nothing yet that could be watched.
	}
	if !s.synced && again == 0 {
		s.synced = true
		s.sink.Synced(s.dir)
	}
	return again
}

// read brings s.files up to date with the tree.
func (s *Source) read(t *tree) (again time.Duration) {
	now := time.Now()
	present := make(map[string]bool, len(t.files))
	s.skipped = 0
	for _, f := range t.files {
		present[f.path] = true
		c := s.files[f.path]
		if c == nil {
			c = &content{}
			s.files[f.path] = c
		}
		if !c.refresh(f, s.mesh) {
			again = soon
		}
		s.skipped += c.skipped
	}
	for path, c := range s.files {
		switch {
		case present[path] || t.unreadable(path):
			c.gone = time.Time{}
		case c.gone.IsZero():
			c.gone, again = now, soon
		case now.Sub(c.gone) >= soon:
			delete(s.files, path)
		default:
			again = soon
		}
	}
	return again
}

// diff makes the events that lead from what is in force to next, and puts that in force.
func (s *Source) diff(next map[value.ObjectKey]*object) []ingest.Event {
	var events []ingest.Event
	for key, o := range next {
		if old, ok := s.inForce[key]; !ok || old.typed != o.typed || old.age != o.age {
			events = append(events, ingest.Event{Source: s.dir, Key: key, Object: o.aged(), Where: o.where()})
		}
	}
	for key, o := range s.inForce {
		if _, ok := next[key]; !ok {
			events = append(events, ingest.Event{Source: s.dir, Key: key, Where: o.where()})
		}
	}
	s.inForce = next
	return events
}

// report tells what is wrong now where that differs from what was told before.
func (s *Source) report(problems map[string][]problem) {
	for _, place := range sortedKeys(s.reported) {
		if !equalProblems(s.reported[place], problems[place]) {
			s.sink.Accept(s.dir, place)
			delete(s.reported, place)
		}
	}
	for _, place := range sortedKeys(problems) {
		if _, ok := s.reported[place]; ok {
			continue
		}
		for _, p := range problems[place] {
			s.sink.Reject(p.rejection(s.dir))
		}
		s.reported[place] = problems[place]
	}
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// realDir is the directory in which the file behind path really lies.
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
