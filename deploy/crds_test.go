package deploy

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the chart's CRDs anew")

// TestCRDs holds the chart's CRDs against those of the module that has Istio's API: the same kinds, versions and
// schemas, without the descriptions.
func TestCRDs(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "istio.io/api").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "kubernetes",
		"customresourcedefinitions.gen.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	want.WriteString("# The kinds of Istio's API. `go test ./deploy -run TestCRDs -update` writes them.\n")
	for d := range strings.SplitSeq(string(text), "\n---\n") {
		var crd any
		if err := yaml.Unmarshal([]byte(d), &crd); err != nil {
			t.Fatal(err)
		}
		short, err := yaml.Marshal(undescribed(crd))
		if err != nil {
			t.Fatal(err)
		}
		want.WriteString("---\n")
		want.Write(short)
	}
	if *update {
		if err := os.WriteFile("chart/crds/istio.yaml", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := fs.ReadFile(Chart(), "crds/istio.yaml")
	if err != nil || !bytes.Equal(have, want.Bytes()) {
		t.Errorf("the CRDs are not those of the module (%v): write them with -update", err)
	}
}

// undescribed is a schema without texts for people. A property may be called "description": its value is no text.
func undescribed(node any) any {
	switch n := node.(type) {
	case map[string]any:
		for k, v := range n {
			if _, text := v.(string); text && k == "description" {
				delete(n, k)
			} else {
				n[k] = undescribed(v)
			}
		}
	case []any:
		for i := range n {
			n[i] = undescribed(n[i])
		}
	}
	return node
}
