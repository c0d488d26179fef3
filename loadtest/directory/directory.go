package directory

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/pilotd/pilotd/loadtest/mesh"
)

const (
	shapeFile = "loadtest.shape"
	liveDir   = "live"
)

// Directory is a mesh in a directory. Not safe for concurrent use.
type Directory struct {
	*mesh.Editor
	path string // immutable after Write or Open
}

// Write creates the directory of a mesh. It replaces an existing directory only if that contains a mesh, too.
func Write(path string, s mesh.Shape) (*Directory, error) {
	if entries, err := os.ReadDir(path); err == nil && len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(path, shapeFile)); err != nil {
			return nil, fmt.Errorf("%s is neither empty nor of a load test", path)
		}
		if err := os.RemoveAll(path); err != nil {
			return nil, err
		}
	}
	d := newDirectory(path, s)
	if err := os.MkdirAll(filepath.Join(path, liveDir), 0o755); err != nil {
		return nil, err
	}
	if err := d.write(); err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(s)
	if err != nil {
		return nil, err
	}
	return d, os.WriteFile(filepath.Join(path, shapeFile), text, 0o644)
}

// write writes all objects.
func (d *Directory) write() error {
	live := map[string]bool{}
	for o := range d.Reset().Objects() {
		live[liveFile(o)] = true
	}
	files := collected{dir: d.path, texts: map[string]*bytes.Buffer{}}
	for o := range d.Mesh().Objects() {
		text, err := yaml.Marshal(o)
		if err != nil {
			return err
		}
		if name := liveFile(o); live[name] {
			err = os.WriteFile(filepath.Join(d.path, name), text, 0o644)
		} else {
			err = files.add(file(o), text)
		}
		if err != nil {
			return err
		}
	}
	return files.flush()
}

// Open finds the mesh in a directory.
func Open(path string) (*Directory, error) {
	name := filepath.Join(path, shapeFile)
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	s, err := mesh.Parse(name, text)
	if err != nil {
		return nil, err
	}
	return newDirectory(path, s), nil
}

func newDirectory(path string, s mesh.Shape) *Directory {
	d := &Directory{path: path}
	d.Editor = mesh.NewEditor(mesh.New(s), d)
	return d
}

// file returns the file of an object that edits do not change.
func file(o mesh.Object) string {
	if ns := o.GetNamespace(); ns != "" {
		return ns + ".yaml"
	}
	return "cluster.yaml"
}

// liveFile returns the file of an object that edits change.
func liveFile(o mesh.Object) string {
	kind := strings.ToLower(o.GetObjectKind().GroupVersionKind().Kind)
	return filepath.Join(liveDir, fmt.Sprintf("%s-%s-%s.yaml", kind, o.GetNamespace(), o.GetName()))
}

// Write implements mesh.Writer.
func (d *Directory) Write(c mesh.Change) (at time.Time, err error) {
	for i, w := range c.Writes {
		var now time.Time
		if w.Delete {
			now, err = time.Now(), os.Remove(filepath.Join(d.path, liveFile(w.Object)))
		} else {
			now, err = d.replace(w.Object)
		}
		if err != nil {
			return at, err
		}
		if i == c.Mark {
			at = now
		}
	}
	return at, nil
}

// Restore undoes all edits, including those of a run that was aborted.
func (d *Directory) Restore() error {
	known := map[string]bool{}
	for o := range d.Reset().Objects() {
		name := liveFile(o)
		known[name] = true
		text, err := yaml.Marshal(o)
		if err != nil {
			return err
		}
		if now, err := os.ReadFile(filepath.Join(d.path, name)); err == nil && bytes.Equal(now, text) {
			continue
		}
		if _, err := d.replace(o); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(filepath.Join(d.path, liveDir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := filepath.Join(liveDir, e.Name()); !known[name] {
			if err := os.Remove(filepath.Join(d.path, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// replace writes a new version of an object, and returns the moment.
func (d *Directory) replace(o mesh.Object) (time.Time, error) {
	text, err := yaml.Marshal(o)
	if err != nil {
		return time.Time{}, err
	}
	draft := filepath.Clean(d.path) + ".draft" // outside of the watched directory
	if err := os.WriteFile(draft, text, 0o644); err != nil {
		return time.Time{}, err
	}
	at := time.Now()
	return at, os.Rename(draft, filepath.Join(d.path, liveFile(o)))
}
