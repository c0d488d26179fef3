package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pilotd/pilotd/loadtest/mesh"
)

// What is made where Istio is not installed has the names, and the versions, of Istio's own definitions.
func TestDefinitionsAreNamedAsIstios(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "istio.io/api").Output()
	must(t, err)
	all, err := definitions(filepath.Join(strings.TrimSpace(string(out)), "kubernetes",
		"customresourcedefinitions.gen.yaml"))
	must(t, err)
	istios := map[string]*unstructured.Unstructured{}
	for _, d := range all {
		istios[d.GetName()] = d
	}
	own, err := definitions("")
	must(t, err)
	if len(own) != 6 {
		t.Errorf("%d definitions", len(own))
	}
	for _, d := range own {
		theirs := istios[d.GetName()]
		if theirs == nil {
			t.Errorf("Istio has no %s", d.GetName())
			continue
		}
		for _, field := range []string{"kind", "listKind", "plural", "singular"} {
			a, _, _ := unstructured.NestedString(d.Object, "spec", "names", field)
			b, _, _ := unstructured.NestedString(theirs.Object, "spec", "names", field)
			if a != b {
				t.Errorf("%s: %s is %s, Istio's is %s", d.GetName(), field, a, b)
			}
		}
		if a, b := versionsOf(d), versionsOf(theirs); !slices.Equal(a, b) {
			t.Errorf("%s: versions %v, Istio's are %v", d.GetName(), a, b)
		}
	}
}

func versionsOf(d *unstructured.Unstructured) (out []string) {
	all, _, _ := unstructured.NestedSlice(d.Object, "spec", "versions")
	for _, v := range all {
		if v := v.(map[string]any); v["served"] == true {
			out = append(out, v["name"].(string))
		}
	}
	slices.Sort(out)
	return out
}

func TestDefinitionsThatCannotBeRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "crds.yaml")
	if _, err := definitions(file); err == nil {
		t.Error("a file that is not there is read")
	}
	must(t, os.WriteFile(file, []byte("kind: [\n"), 0o600))
	if _, err := definitions(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Error(err)
	}
}

// The content that is written on an object is a function of the object, and of whether edits change it.
func TestContentIsSigned(t *testing.T) {
	m := mesh.New(shape(t, "small"))
	a, err := sign(dress(m.Pod(1)), still)
	must(t, err)
	b, err := sign(dress(m.Pod(1)), still)
	must(t, err)
	c, err := sign(dress(m.Pod(1)), live)
	must(t, err)
	d, err := sign(dress(m.Pod(2)), still)
	must(t, err)
	if a != b || a == c || a == d || c == d {
		t.Error(a, b, c, d)
	}
}

func TestServersThatAreNotThere(t *testing.T) {
	_, err := Populate(t.Context(), Options{Kubeconfig: filepath.Join(t.TempDir(), "none")}, shape(t, "small"))
	if err == nil || !strings.Contains(err.Error(), "kubeconfig") {
		t.Error(err)
	}
}
