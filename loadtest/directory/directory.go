package directory

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pilotd/pilotd/loadtest/mesh"
)

const shapeFile = "loadtest.shape"

// Lanes is how many services have an EndpointSlice that is edited while a test runs, at most.
const Lanes = 50

// Directory is a mesh in a directory. It is for use by one goroutine.
type Directory struct {
	// Immutable after Write or Open.
	path  string
	mesh  *mesh.Mesh
	edits map[string]string // the files of the objects that are edited
}

// Write makes the directory of a mesh; one that was there before must be a mesh's too, and is replaced.
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
	if err := os.MkdirAll(filepath.Join(path, "live"), 0o755); err != nil {
		return nil, err
	}
	files := map[string]*bytes.Buffer{}
	for _, o := range d.mesh.Objects() {
		name := d.file(o)
		text, err := yaml.Marshal(o)
		if err != nil {
			return nil, err
		}
		if files[name] == nil {
			files[name] = &bytes.Buffer{}
		} else {
			files[name].WriteString("---\n")
		}
		files[name].Write(text)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(path, name), text.Bytes(), 0o644); err != nil {
			return nil, err
		}
	}
	text, err := yaml.Marshal(s)
	if err != nil {
		return nil, err
	}
	return d, os.WriteFile(filepath.Join(path, shapeFile), text, 0o644)
}

// Open finds the mesh of a directory.
func Open(path string) (*Directory, error) {
	text, err := os.ReadFile(filepath.Join(path, shapeFile))
	if err != nil {
		return nil, err
	}
	s, err := mesh.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(path, shapeFile), err)
	}
	return newDirectory(path, s), nil
}

func newDirectory(path string, s mesh.Shape) *Directory {
	d := &Directory{path: path, mesh: mesh.New(s)}
	d.edits = d.live()
	return d
}

// file is where an object is.
func (d *Directory) file(o metav1.Object) string {
	if name, ok := d.edits[key(o)]; ok {
		return name
	}
	if ns := o.GetNamespace(); ns != "" {
		return ns + ".yaml"
	}
	return "cluster.yaml"
}

// Mesh is the mesh of the directory.
func (d *Directory) Mesh() *mesh.Mesh { return d.mesh }

// Lanes is how many services' endpoints can be edited.
func (d *Directory) Lanes() int { return min(Lanes, d.mesh.Services) }

// Endpoint edits the endpoints of service s < Lanes, so that they say n, and returns the moment.
func (d *Directory) Endpoint(s, n int) (time.Time, error) { return d.edit(d.mesh.MarkedSlice(s, n)) }

// Route edits the VirtualService of the first service, so that it says n, and returns the moment.
func (d *Directory) Route(n int) (time.Time, error) { return d.edit(d.mesh.MarkedRoute(n)) }

// Restore undoes all edits.
func (d *Directory) Restore() error {
	objects := []metav1.Object{d.mesh.MarkedRoute(0)}
	for s := range d.Lanes() {
		objects = append(objects, d.mesh.MarkedSlice(s, 0))
	}
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return err
		}
		if now, err := os.ReadFile(filepath.Join(d.path, d.file(o))); err == nil && bytes.Equal(now, text) {
			continue
		}
		if _, err := d.edit(o); err != nil {
			return err
		}
	}
	return nil
}

// live are the files of the objects that are edited.
func (d *Directory) live() map[string]string {
	out := map[string]string{}
	route := d.mesh.MarkedRoute(0)
	out[key(route)] = filepath.Join("live", "route.yaml")
	for s := range d.Lanes() {
		out[key(d.mesh.Slice(s, true))] = filepath.Join("live", fmt.Sprintf("endpoints-%05d.yaml", s))
	}
	return out
}

func key(o metav1.Object) string { return fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName()) }

// edit puts an object in place of its predecessor.
func (d *Directory) edit(o metav1.Object) (time.Time, error) {
	text, err := yaml.Marshal(o)
	if err != nil {
		return time.Time{}, err
	}
	draft := filepath.Clean(d.path) + ".draft" // beside the directory, where nobody watches for it
	if err := os.WriteFile(draft, text, 0o644); err != nil {
		return time.Time{}, err
	}
	at := time.Now()
	return at, os.Rename(draft, filepath.Join(d.path, d.file(o)))
}
