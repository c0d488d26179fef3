package parts

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Objects stores the objects of a mesh, in a cluster or a directory, so that the same test runs with either.
type Objects interface {
	// Apply creates or updates the objects of a multi-document YAML text, including their status.
	Apply(text string)
	// Delete deletes the object that the text names: apiVersion, kind, metadata.
	Delete(text string)
	// Sources returns the sources that make pilotd read the objects.
	Sources() Sources
}

// decode reads all documents of a YAML text.
func decode(text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if o.Object != nil {
			objects = append(objects, o)
		}
	}
}

// Directory stores objects as files that pilotd watches, one object in each.
type Directory struct {
	// Immutable after NewDirectory.
	t    testing.TB
	Path string
}

// NewDirectory makes an empty directory.
func NewDirectory(t testing.TB) *Directory {
	return &Directory{t: t, Path: t.TempDir()}
}

// Sources tells pilotd to read the directory.
func (d *Directory) Sources() Sources { return Sources{ConfigDir: d.Path} }

// Apply writes one file for each object. It replaces a file by renaming, as editors do.
func (d *Directory) Apply(text string) {
	d.t.Helper()
	objects, err := decode(text)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, o := range objects {
		data, err := o.MarshalJSON()
		if err != nil {
			d.t.Fatal(err)
		}
		path := d.file(o)
		if err := os.WriteFile(path+".new", data, 0o600); err != nil {
			d.t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			d.t.Fatal(err)
		}
	}
}

// Delete removes the object's file.
func (d *Directory) Delete(text string) {
	d.t.Helper()
	objects, err := decode(text)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, o := range objects {
		if err := os.Remove(d.file(o)); err != nil {
			d.t.Fatal(err)
		}
	}
}

func (d *Directory) file(o *unstructured.Unstructured) string {
	name := strings.Join([]string{o.GetKind(), o.GetNamespace(), o.GetName()}, "_")
	return filepath.Join(d.Path, strings.ToLower(name)+".yaml")
}
