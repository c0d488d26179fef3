// Package transcript runs tests that are written as txtar archives, which list inputs and the expected output. Only
// tests use it.
package transcript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// File is one archive and the file that it was read from.
type File struct {
	Path string
	*txtar.Archive
}

// Name returns the name of the file without directory and extension.
func (f *File) Name() string { return strings.TrimSuffix(filepath.Base(f.Path), ".txtar") }

// Read returns the files that match a pattern. It fails the test if there are none.
func Read(t testing.TB, pattern string) (out []*File) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files match %s: %v", pattern, err)
	}
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, &File{path, a})
	}
	return out
}

// Each runs a subtest for each file that matches a pattern, named after the file.
func Each(t *testing.T, pattern string, run func(*testing.T, *File)) {
	t.Helper()
	for _, f := range Read(t, pattern) {
		t.Run(f.Name(), func(t *testing.T) { run(t, f) })
	}
}

// Write replaces the file by its present members. Tests call it when they are run with -update.
func (f *File) Write(t testing.TB) {
	t.Helper()
	if err := os.WriteFile(f.Path, txtar.Format(f.Archive), 0o644); err != nil {
		t.Fatal(err)
	}
}
