package inject

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/pilotd/pilotd/ingest"
)

// TestTable holds what is injected against what istiod's injector makes of the same pods.
func TestTable(t *testing.T) {
	in := newInjector(t, settings(t))
	files, err := filepath.Glob("testdata/pods/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no pods", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			pod, want := podFrom(t, archive.Files[0].Data), podFrom(t, archive.Files[1].Data)
			got, err := in.Inject(Request{Pod: pod})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(asMap(t, want), asMap(t, got.Pod)); d != "" {
				t.Errorf("-istiod +pilotd\n%s", d)
			}
			if len(got.Warnings) > 0 {
				t.Errorf("warnings: %q", got.Warnings)
			}
			again, err := in.Inject(Request{Pod: got.Pod})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(asMap(t, got.Pod), asMap(t, again.Pod)); d != "" {
				t.Errorf("injected again: -once +twice\n%s", d)
			}
		})
	}
}

func settings(t testing.TB) Settings {
	t.Helper()
	values, err := os.ReadFile("testdata/values.json")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/mesh.yaml")
	if err != nil {
		t.Fatal(err)
	}
	mesh, err := ingest.ParseMesh(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return Settings{Values: string(values), Mesh: mesh, DefaultProxy: ingest.DefaultMesh().DefaultConfig}
}

func newInjector(t testing.TB, s Settings) *Injector {
	t.Helper()
	in, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func podFrom(t testing.TB, text []byte) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(text, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

func asMap(t testing.TB, pod *corev1.Pod) map[string]any {
	t.Helper()
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
