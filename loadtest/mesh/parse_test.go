package mesh

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const smallest = "namespaces: 1\nservices: 1\npods: 1\n"

// A bad shape is one line: the file, the line, the field, and what was expected.
func TestBadShapesSayWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                                            "f.yaml:1: the file is empty: expected namespaces, services and pods",
		"services: 1\npods: 1\n":                      "f.yaml:1: namespaces is missing: expected at least 1",
		"namespaces: 1\nservices: 0\npods: 1\n":       "f.yaml:2: services is 0: expected at least 1",
		smallest + "podz: 1\n":                        "f.yaml:4: podz is unknown: expected one of about, seed, namespaces,",
		smallest + "pods: 2\n":                        "f.yaml:4: pods is there twice: expected it once",
		smallest + "tcp: often\n":                     "f.yaml:4: tcp is often: expected a number",
		smallest + "tcp: 1.5\n":                       "f.yaml:4: tcp is 1.5: expected a share from 0 to 1",
		smallest + "tcp: .nan\n":                      "f.yaml:4: tcp is .nan: expected a share from 0 to 1",
		smallest + "seed: -1\n":                       "f.yaml:4: seed is -1: expected a whole number, 0 or more",
		smallest + "entries: maybe\n":                 "f.yaml:4: entries is maybe: expected true or false",
		smallest + "extensions: [1]\n":                "f.yaml:4: extensions is no single value: expected a whole number",
		smallest + "gateways: 3\n":                    "f.yaml:4: gateways: expected the fields deployments, pods, hosts, routes",
		smallest + "gateways:\n  routes: 1\n":         "f.yaml:4: gateways.deployments is missing: expected at least 1",
		smallest + "gateways:\n  deploys: 1\n":        "f.yaml:5: gateways.deploys is unknown: expected one of deployments, pods, hosts, routes",
		smallest + "large: {services: 1}\n":           "f.yaml:4: large.pods is missing: expected at least 1",
		smallest + "sidecars: {workloads: 2}\n":       "f.yaml:4: sidecars.workloads is 2: expected at most 1, the number of services and versions",
		smallest + "sidecars:\n  namespaces: 2\n":     "f.yaml:5: sidecars.namespaces is 2: expected at most 1, the number of namespaces",
		"namespaces: 1\nservices: 9000000\npods: 2\n": "f.yaml:3: pods is 2: expected at most 15875000 workloads in all",
		smallest + "serviceEntries: {static: 1}\n":    "f.yaml:4: serviceEntries.endpoints is missing: expected at least 1",
		"- 1\n":       "f.yaml:1: expected the fields about, seed",
		"a: b\n c: [": "f.yaml:",
	} {
		_, err := Parse("f.yaml", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q:\n%v\nwant\n%s", text, err, want)
		}
	}
}

// A shape is found by its name or by its file's; what is neither is said with what there is.
func TestShapesAreFound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	must(t, os.WriteFile(file, []byte(smallest+"seed: 3\nheadless: {services: 1, pods: 2}\n"), 0o600))
	if s, err := Find(file); err != nil || s.Seed != 3 || s.Headless.Pods != 2 {
		t.Errorf("%+v %v", s, err)
	}
	if s, err := Find("small"); err != nil || s.Services != 40 {
		t.Errorf("%+v %v", s, err)
	}
	if _, err := Find("tiny"); err == nil || !strings.Contains(err.Error(), `"tiny"`) ||
		!strings.Contains(err.Error(), "1000x20") {
		t.Error(err)
	}
}

// What docs/loadtest.md shows is a shape.
func TestDocumentedShapeIsOne(t *testing.T) {
	page, err := os.ReadFile("../../docs/loadtest.md")
	must(t, err)
	_, block, _ := strings.Cut(string(page), "\n    namespaces:")
	block, _, _ = strings.Cut("    namespaces:"+block, "\n\n")
	s, err := Parse("docs/loadtest.md", []byte(block))
	if err != nil || s.Gateway.Routes != 5000 || !s.Entries {
		t.Errorf("%+v %v", s, err)
	}
}
