package inject

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/inject/injecttest"
	"github.com/pilotd/pilotd/transcript"
)

// TestTable holds what is injected against what istiod's injector makes of the same pods.
func TestTable(t *testing.T) {
	in := newInjector(t, settings(t))
	transcript.Each(t, "testdata/pods/*.txtar", func(t *testing.T, archive *transcript.File) {
		pod, want := podFrom(t, archive.Files[0].Data), podFrom(t, archive.Files[1].Data)
		got, err := in.Inject(Request{Pod: pod})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(injecttest.Map(t, want), injecttest.Map(t, got.Pod)); d != "" {
			t.Errorf("-istiod +pilotd\n%s", d)
		}
		if len(got.Warnings) > 0 {
			t.Errorf("warnings: %q", got.Warnings)
		}
		again, err := in.Inject(Request{Pod: got.Pod})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(injecttest.Map(t, got.Pod), injecttest.Map(t, again.Pod)); d != "" {
			t.Errorf("injected again: -once +twice\n%s", d)
		}
	})
}

func settings(t testing.TB) Settings {
	t.Helper()
	values, mesh := injecttest.Settings(t)
	return Settings{Values: values, Mesh: mesh, DefaultProxy: ingest.DefaultMesh().DefaultConfig}
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
