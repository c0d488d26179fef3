package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Mesh reads the mesh configuration from a file and follows its changes.
type Mesh struct {
	// Immutable after NewMesh.
	path string
	sink ingest.Sink
	log  *slog.Logger

	// Owned by the goroutine that calls Run.
	text     string
	present  bool      // text is in force
	gone     time.Time // when the file was first missing
	reported string    // the last reported error of reading the file
	synced   bool
	settling settling
	waiting  waiting // for Waiting, which any goroutine may call
}

// NewMesh returns the source of a mesh configuration file. The path is also the name of the source. The file need not
// exist: it is read when it appears.
func NewMesh(path string, sink ingest.Sink, log *slog.Logger) *Mesh {
	if log == nil {
		log = slog.Default()
	}
	return &Mesh{path: filepath.Clean(path), sink: sink, log: log.With("source", path)}
}

// Name returns the name of the source in events.
func (m *Mesh) Name() string { return m.path }

// Waiting says what Synced waits for; empty once Synced has been called. Any goroutine may call it.
func (m *Mesh) Waiting() []string { return m.waiting.list() }

// Run reads the file and follows it until ctx ends, and then returns nil.
func (m *Mesh) Run(ctx context.Context) error {
	follow(ctx, m.path, m.log, m)
	return nil
}

func (m *Mesh) inspect([]string) (next, bool) { return next{}, false }

func (m *Mesh) scan(watch func(dir, path string)) next {
	watch(m.path, "")
	watch(filepath.Dir(m.path), "") // here a mounted ConfigMap replaces its symlink
	return next{after: m.again(), scan: true}
}

// again reads the file, and returns when to read it again if no event occurs.
func (m *Mesh) again() (again time.Duration) {
	data, finished, err := m.settling.read(m.path, time.Now(), m.text != "")
	switch {
	case !finished:
		m.wait("the file, which is being written")
		return soon
	case errors.Is(err, fs.ErrNotExist):
		again = m.missing()
	case err != nil:
		m.gone = time.Time{}
		m.wait(fmt.Sprintf("the file, which cannot be read: %v", err))
		if m.reported != err.Error() {
			m.reported = err.Error()
			m.sink.Reject(ingest.Rejection{Source: m.path, Where: m.path, Reason: fmt.Sprintf("cannot be read: %v",
				err)})
		}
		return unwatched
	default:
		m.read(string(data))
	}
	if again == 0 && !m.synced {
		m.synced = true
		m.waiting.set(nil)
		m.sink.Synced(m.path)
	}
	if _, err := os.Stat(filepath.Dir(m.path)); err != nil {
		return sooner(again, unwatched) // there is no directory that could be watched yet
	}
	return again
}

// wait records what Synced waits for, unless it has been called.
func (m *Mesh) wait(what string) {
	if !m.synced {
		m.waiting.set([]string{what})
	}
}

func (m *Mesh) read(text string) {
	m.gone = time.Time{}
	m.accept()
	if !m.present || m.text != text {
		m.present, m.text = true, text
		m.apply(text)
	}
}

// missing withdraws the configuration once the file has stayed away for a moment: an editor may be about to write its
// successor.
func (m *Mesh) missing() (again time.Duration) {
	m.accept()
	if !m.present {
		return 0
	}
	if m.gone.IsZero() {
		m.gone = time.Now()
	}
	if time.Since(m.gone) < soon {
		return soon
	}
	m.present, m.text = false, ""
	m.apply(nil)
	return 0
}

func (m *Mesh) accept() {
	if m.reported != "" {
		m.reported = ""
		m.sink.Accept(m.path, m.path)
	}
}

func (m *Mesh) apply(object any) {
	key := value.ObjectKey{Kind: value.KindMeshConfig, Name: ingest.MeshName}
	m.sink.Apply([]ingest.Event{{Source: m.path, Key: key, Object: object, Where: m.path + ":1"}})
	m.log.Info("mesh configuration read", "present", object != nil)
}
