package manifest

import (
	"flag"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/inject"
	"github.com/pilotd/pilotd/transcript"
)

var update = flag.Bool("update", false, "write what comes out into testdata")

// TestFiles injects files with a template that shows what it is told, so that the expected output can be read.
func TestFiles(t *testing.T) {
	transcript.Each(t, "testdata/*.txtar", func(t *testing.T, archive *transcript.File) {
		got, notes := run(t, archive.Files[0].Data)
		if *update {
			archive.Files = append(archive.Files[:1], txtar.File{Name: "out.yaml", Data: []byte(got)},
				txtar.File{Name: "notes", Data: []byte(notes)})
			archive.Write(t)
			return
		}
		if d := cmp.Diff(string(archive.Files[1].Data), got); d != "" {
			t.Errorf("-want +got\n%s", d)
		}
		if d := cmp.Diff(string(archive.Files[2].Data), notes); d != "" {
			t.Errorf("notes: -want +got\n%s", d)
		}
		if strings.HasPrefix(got, "error") {
			return
		}
		if again, _ := run(t, []byte(got)); again != got {
			t.Errorf("injected again: -once +twice\n%s", cmp.Diff(got, again))
		}
	})
}

func run(t *testing.T, text []byte) (out, notes string) {
	t.Helper()
	mesh, err := ingest.ParseMesh("")
	if err != nil {
		t.Fatal(err)
	}
	in, err := inject.New(inject.Settings{Mesh: mesh, DefaultProxy: mesh.DefaultConfig,
		Config: inject.Config{Templates: map[string]string{"sidecar": `
metadata:
  annotations: {belongs: "{{.TypeMeta.APIVersion}} {{.TypeMeta.Kind}} {{.DeploymentMeta.Namespace}}/{{.DeploymentMeta.Name}}"}
spec:
  containers: [{name: istio-proxy, image: "{{.ProxyImage}}"}]
`}}})
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	f := File{Injector: in, Namespace: "shop", Note: func(object string, n Note) {
		lines.WriteString(object + ": " + n.String() + "\n")
	}}
	injected, err := f.Inject(text)
	if err != nil {
		return "error: " + err.Error() + "\n", lines.String()
	}
	return string(injected), lines.String()
}
