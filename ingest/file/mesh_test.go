package file

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/ingest/sinktest"
	"github.com/pilotd/pilotd/snapshot/value"
)

func meshText(told *sinktest.Told) any {
	return told.Objects[value.ObjectKey{Kind: value.KindMeshConfig, Name: "mesh"}].Object
}

func TestMeshFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mesh")
	r := sinktest.New()
	follows(t, NewMesh(path, r, quiet()).Run)
	r.Until(t, "sync without a file", func(told *sinktest.Told) bool { return synced(told) && len(told.Applies) == 0 })
	write(t, path, "rootNamespace: one\n")
	r.Until(t, "the file", func(told *sinktest.Told) bool { return meshText(told) == "rootNamespace: one\n" })
	write(t, path, "rootNamespace: two\n")
	r.Until(t, "its edit", func(told *sinktest.Told) bool { return meshText(told) == "rootNamespace: two\n" })
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	r.Until(t, "its end", func(told *sinktest.Told) bool { return meshText(told) == nil })
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
	r := sinktest.New()
	follows(t, NewMesh(filepath.Join(dir, "mesh"), r, quiet()).Run)
	r.Until(t, "the first version", func(told *sinktest.Told) bool { return meshText(told) == "1" && synced(told) })
	swap("2")
	r.Until(t, "the second version", func(told *sinktest.Told) bool { return meshText(told) == "2" })
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
  ca.crt: roots
`)
	r := start(t, dir)
	told := r.Now()
	// Of others only what has roots is kept.
	other := ingest.Credential(told.Objects[value.ObjectKey{Kind: value.KindConfigMap, Namespace: "istio-system",
		Name: "other"}].Object)
	if meshText(told) != "rootNamespace: x" || len(told.Objects) != 2 || string(other["ca.crt"]) != "roots" ||
		len(other["mesh"]) > 0 {
		t.Errorf("have %v", told.Objects)
	}
}
