package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// tree is the listing of a directory tree.
type tree struct {
	// files are sorted by path.
	files []found
	// failed are the directories and files that could not be read, with the reason.
	failed map[string]error
	// err is why the root could not be read.
	err error

	// dirs are the directories.
	dirs map[string]bool
	// plain says that every file has only one path, because there are no links.
	plain bool

	root  string
	watch func(dir, path string)
	// entries counts files and directories.
	entries int
	// above are the directories that enclose the present one, to detect cycles of symlinks.
	above []fs.FileInfo
}

// found is one file of a tree.
type found struct {
	path string
	info fs.FileInfo
}

// walk lists the files below root and follows symlinks. It calls watch for each directory before it reads it, and for
// each file behind a symlink, with an empty path because what happens there tells no path. It skips names that start
// with a dot: they belong to editors, to version control, and to the way in which Kubernetes mounts a ConfigMap.
func walk(root string, watch func(dir, path string)) *tree {
	t := &tree{root: root, watch: watch, failed: map[string]error{}, dirs: map[string]bool{}, plain: true}
	t.walk(root)
	t.err = t.failed[root]
	slices.SortFunc(t.files, func(a, b found) int { return strings.Compare(a.path, b.path) })
	return t
}

func (t *tree) walk(dir string) {
	info, err := os.Stat(dir)
	if err != nil {
		t.fail(dir, err)
		return
	}
	if slices.ContainsFunc(t.above, func(a fs.FileInfo) bool { return os.SameFile(a, info) }) {
		return
	}
	if len(t.above) >= maxDepth {
		t.fail(dir, fmt.Errorf("it lies too deep: expected at most %d directories in each other", maxDepth))
		return
	}
	if t.entries >= maxEntries {
		t.fail(dir, fmt.Errorf("there are too many files and directories: expected at most %d", maxEntries))
		return
	}
	t.dirs[dir] = true
	t.watch(dir, dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.fail(dir, err)
		return
	}
	t.above = append(t.above, info)
	defer func() { t.above = t.above[:len(t.above)-1] }()
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if t.entries++; t.entries > maxEntries {
			t.fail(dir, fmt.Errorf("there are too many files and directories: expected at most %d", maxEntries))
			return
		}
		t.entry(filepath.Join(dir, e.Name()), e)
	}
}

func (t *tree) entry(path string, e fs.DirEntry) {
	if e.Type()&fs.ModeSymlink != 0 {
		t.plain = false
	}
	if !e.IsDir() && e.Type()&fs.ModeSymlink == 0 && !readable(path) {
		return
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		t.fail(path, err)
	case info.IsDir():
		t.walk(path)
	case info.Mode().IsRegular() && readable(path):
		if e.Type()&fs.ModeSymlink != 0 {
			t.watch(path, "")
		}
		t.plain = t.plain && !linked(info)
		t.files = append(t.files, found{path: path, info: info})
	}
}

// fail records a path that cannot be read. A path that does not exist (any more) is no failure, unless it is the root.
func (t *tree) fail(path string, err error) {
	if errors.Is(err, fs.ErrNotExist) && path != t.root {
		return
	}
	t.failed[path] = err
}

// unreadable reports whether path is, or is inside, something that could not be read.
func (t *tree) unreadable(path string) bool {
	for p := path; ; p = filepath.Dir(p) {
		if _, ok := t.failed[p]; ok {
			return true
		}
		if p == t.root || p == filepath.Dir(p) {
			return false
		}
	}
}

// readable reports whether a file's name has an ending of files with objects.
func readable(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}
