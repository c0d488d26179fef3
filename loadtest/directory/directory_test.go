package directory

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/loadtest/mesh"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// contents returns the files of a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"*", "live/*"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		must(t, err)
		for _, f := range files {
			if text, err := os.ReadFile(f); err == nil {
				name, err := filepath.Rel(dir, f)
				must(t, err)
				out[name] = string(text)
			}
		}
	}
	return out
}

func TestDirectoryIsAFunctionOfItsShape(t *testing.T) {
	for _, name := range mesh.Names() {
		if _, err := mesh.Named(name); err != nil {
			t.Error(err)
		}
	}
	s, err := mesh.Named("small")
	must(t, err)
	a, b := t.TempDir(), t.TempDir()
	for _, dir := range []string{a, b, b} { // the last one replaces the one before
		_, err := Write(dir, s)
		must(t, err)
	}
	first, second := contents(t, a), contents(t, b)
	if len(first) != len(second) || len(first) != 2+s.Namespaces+1+s.Services*(1+s.Pods) {
		t.Error(len(first), "and", len(second), "files")
	}
	for name, text := range first {
		if second[name] != text {
			t.Errorf("%s differs", name)
		}
	}
	s.Seed++
	_, err = Write(b, s)
	must(t, err)
	if second := contents(t, b); second["team-000.yaml"] == first["team-000.yaml"] {
		t.Error("another seed makes the same pods")
	}
}

func TestForeignDirectoryIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "precious"), []byte("x"), 0o644))
	if _, err := Write(dir, mesh.Usual(1)); err == nil {
		t.Error("written into a directory of something else")
	}
}

func TestEditsAreMarkedAndRestored(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mesh")
	s, err := mesh.Named("small")
	must(t, err)
	_, err = Write(dir, s)
	must(t, err)
	before := contents(t, dir)
	d, err := Open(dir)
	must(t, err)
	_, err = d.Endpoint(3, 12)
	must(t, err)
	_, err = d.Route(13)
	must(t, err)
	now := contents(t, dir)
	for name, mark := range map[string]string{"live/endpointslice-team-003-service-00003-a1b2c.yaml": mesh.Address(12),
		"live/virtualservice-team-000-service-00000.yaml": mesh.Path(13)} {
		if !bytes.Contains([]byte(now[name]), []byte(mark)) || strings.Contains(before[name], mark) {
			t.Errorf("%s does not say %s", name, mark)
		}
	}
	must(t, d.Restore())
	for name, text := range contents(t, dir) {
		if before[name] != text {
			t.Errorf("%s is not as it was", name)
		}
	}
}
