package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestTwoReleasesAreEqual makes two releases of one small program, from the same source in two places. They are equal
// byte by byte, and each part is what it should be.
func TestTwoReleasesAreEqual(t *testing.T) {
	var all [2]map[string][]byte
	for n := range all {
		source := t.TempDir()
		for name, text := range map[string]string{
			"go.mod":                  "module example.com/small\n\ngo 1.26\n",
			"main.go":                 "package main\n\nimport \"example.com/small/cmd/build\"\n\nfunc main() { print(build.Text) }\n",
			"cmd/build/build.go":      "package build\n\nimport _ \"embed\"\n\n//go:embed version.txt\nvar Text string\n",
			"cmd/build/version.txt":   "devel\n",
			"LICENSE":                 "Do what you like.\n",
			"deploy/chart/Chart.yaml": "name: pilotd\nversion: 0.0.0\nappVersion: devel\n",
		} {
			file := filepath.Join(source, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r := release{source: source, out: filepath.Join(t.TempDir(), "out"), version: "v1.2.3", commit: "0123456789ab",
			time: time.Unix(1_700_000_000, 0).UTC(), programs: []program{{"small", "."}}, arches: []string{"amd64", "arm64"},
			chart: "deploy/chart"}
		if err := r.make(t.Context()); err != nil {
			t.Fatal(err)
		}
		all[n] = readAll(t, r.out)
	}
	if names := slices.Sorted(maps.Keys(all[0])); !slices.Equal(names, slices.Sorted(maps.Keys(all[1]))) {
		t.Error("not the same files")
	}
	for name, data := range all[0] {
		if !bytes.Equal(data, all[1][name]) {
			t.Errorf("%s differs", name)
		}
	}
	files := all[0]
	for _, arch := range []string{"amd64", "arm64"} {
		name := "pilotd-v1.2.3-linux-" + arch
		inside := untar(t, files[name+".tar.gz"])
		if !bytes.Contains(inside[name+"/small"], []byte("v1.2.3 0123456789ab")) {
			t.Error("the program does not know its version")
		}
		if len(inside[name+"/licenses/go/LICENSE"]) == 0 || len(inside[name+"/LICENSE"]) == 0 {
			t.Errorf("licences are missing: %v", slices.Sorted(maps.Keys(inside)))
		}
		var list struct {
			BOMFormat  string
			Components []component
		}
		if err := json.Unmarshal(inside[name+"/sbom/small.cdx.json"], &list); err != nil || list.BOMFormat != "CycloneDX" ||
			list.Components[0].Name != "std" {
			t.Error("the list of what is inside:", list, err)
		}
	}
	chart := untar(t, files["pilotd-1.2.3.tgz"])
	if got := string(chart["pilotd/Chart.yaml"]); got != "name: pilotd\nversion: 1.2.3\nappVersion: v1.2.3\n" {
		t.Error(got)
	}
	for line := range strings.Lines(string(files["SHA256SUMS"])) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if got := fmt.Sprintf("%x", sha256.Sum256(files[name])); got != sum || len(files[name]) == 0 {
			t.Errorf("%s: %s, %s", name, got, sum)
		}
	}
}

// TestImage has the layout read and checked by the library that others read layouts with.
func TestImage(t *testing.T) {
	r := release{version: "v1.2.3", commit: "0123456789ab", time: time.Unix(1_700_000_000, 0).UTC(),
		programs: []program{{"small", "."}}}
	dir := t.TempDir()
	files := []entry{{"LICENSE", 0o644, []byte("text")}, {"other", 0o755, []byte("not this")}, {"small", 0o755, []byte("program")}}
	if err := r.image(dir, []builtImage{{"amd64", files}, {"arm64", files}}); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	outer, err := index.IndexManifest()
	if err != nil || len(outer.Manifests) != 1 {
		t.Fatal(outer, err)
	}
	inner, err := index.ImageIndex(outer.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	list, err := inner.IndexManifest()
	if err != nil || len(list.Manifests) != 2 {
		t.Fatal(list, err)
	}
	for n, arch := range []string{"amd64", "arm64"} {
		if p := list.Manifests[n].Platform; p == nil || p.Architecture != arch {
			t.Errorf("platform %v", p)
		}
		image, err := inner.Image(list.Manifests[n].Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil || config.Config.User != "1337:1337" || config.Architecture != arch ||
			!slices.Equal(config.Config.Entrypoint, []string{"/usr/local/bin/small"}) {
			t.Errorf("%+v, %v", config, err)
		}
		layers, err := image.Layers()
		if err != nil || len(layers) != 2 {
			t.Fatal(len(layers), err)
		}
		text, err := layers[1].Compressed()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(text)
		if err != nil {
			t.Fatal(err)
		}
		inside := untar(t, data)
		if string(inside["usr/local/bin/small"]) != "program" || len(inside) != 2 {
			t.Errorf("%v", slices.Sorted(maps.Keys(inside)))
		}
	}
}

// readAll are the files of a directory.
func readAll(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	if err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		out[name], err = os.ReadFile(filepath.Join(dir, name))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// untar are the files of a .tar.gz. It fails where one has something of the machine.
func untar(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.ModTime.Unix() != 1_700_000_000 {
			t.Errorf("%+v", h)
		}
		if h.Typeflag == tar.TypeReg {
			if out[h.Name], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
}
