package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// archive writes files into a .tar.gz, below a directory.
func (r *release) archive(file, below string, files []entry) error {
	var out bytes.Buffer
	// A gzip header can have a time. None is set, so that equal files give equal archives.
	z := gzip.NewWriter(&out)
	if err := writeTar(z, below, files, r.time); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644) // #nosec G306 -- anyone may read a release
}

// writeTar writes files and their directories as owned by root, with nothing that depends on this machine.
func writeTar(w io.Writer, below string, files []entry, at time.Time) error {
	t := tar.NewWriter(w)
	made := map[string]bool{".": true, "/": true}
	var directory func(name string) error
	directory = func(name string) error {
		if made[name] {
			return nil
		}
		if err := directory(path.Dir(name)); err != nil {
			return err
		}
		made[name] = true
		return t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: at})
	}
	for _, f := range files {
		name := below + f.name
		if err := directory(path.Dir(name)); err != nil {
			return err
		}
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: f.mode, Size: int64(len(f.data)),
			ModTime: at}); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	return t.Close()
}

// packChart packs the chart with the release's version, as "helm package" does.
func (r *release) packChart() error {
	version := strings.TrimPrefix(r.version, "v")
	var files []entry
	root := os.DirFS(filepath.Join(r.source, r.chart))
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		if name == "Chart.yaml" {
			text := strings.NewReplacer("\nversion: 0.0.0", "\nversion: "+version, "\nappVersion: devel",
				"\nappVersion: "+r.version).Replace(string(data))
			if strings.Count(text, version) < 2 {
				return fmt.Errorf("%s: the version has no place", name)
			}
			data = []byte(text)
		}
		files = append(files, entry{name, 0o644, data})
		return nil
	})
	if err != nil {
		return err
	}
	return r.archive(filepath.Join(r.out, "pilotd-"+version+".tgz"), "pilotd/", files)
}

// checksums writes SHA256SUMS for all files of a directory, in the format of sha256sum.
func checksums(dir string) error {
	var lines []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256(data), name))
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	sums := []byte(strings.Join(lines, ""))
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), sums, 0o644) // #nosec G306 -- anyone may read a release
}
