package file

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pilotd/pilotd/snapshot/value"
)

func (r *recorder) meshText() any {
	return r.state[value.ObjectKey{Kind: value.KindMeshConfig, Name: "mesh"}].Object
}

func TestMeshFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mesh")
	r := newRecorder()
	follows(t, NewMesh(path, r, quiet()).Run)
	r.until(t, "sync without a file", func() bool { return r.synced && len(r.applies) == 0 })
	write(t, path, "rootNamespace: one\n")
	r.until(t, "the file", func() bool { return r.meshText() == "rootNamespace: one\n" })
	write(t, path, "rootNamespace: two\n")
	r.until(t, "its edit", func() bool { return r.meshText() == "rootNamespace: two\n" })
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	r.until(t, "its end", func() bool { return r.meshText() == nil })
}

func TestMeshFileInAMountedConfigMap(t *testing.T) {
	dir := t.TempDir()
	for _, v := range []string{"1", "2"} {
		write(t, filepath.Join(dir, "..v"+v, "mesh"), v)
	}
	swap := func(v string) {
		if err := os.Symlink("..v"+v, filepath.Join(dir, "..tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	swap("1")
	if err := os.Symlink("..data/mesh", filepath.Join(dir, "mesh")); err != nil {
		t.Fatal(err)
	}
	r := newRecorder()
	follows(t, NewMesh(filepath.Join(dir, "mesh"), r, quiet()).Run)
	r.until(t, "the first version", func() bool { return r.meshText() == "1" && r.synced })
	swap("2")
	r.until(t, "the second version", func() bool { return r.meshText() == "2" })
}

func TestMeshConfigMapInADirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), `apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: istio-system}
data:
  mesh: "rootNamespace: x"
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other, namespace: istio-system}
data:
  mesh: "rootNamespace: y"
`)
	r := start(t, dir)
	if r.meshText() != "rootNamespace: x" || len(r.state) != 1 {
		t.Errorf("have %v", r.state)
	}
}
