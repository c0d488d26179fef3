package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pilotctl runs the program, and returns what it prints.
func pilotctl(args ...string) (string, error) {
	var out bytes.Buffer
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.Execute()
	return out.String(), err
}

// TestManifest prints an installation from a file of values and single ones, which go over those of the file.
func TestManifest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte("hub: first.example\nrevision: canary\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := pilotctl("manifest", "-n", "mesh", "-f", file, "--set", "hub=second.example", "--skip-crds")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"second.example/pilotd:devel", "namespace: mesh", "name: istiod-canary"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, "CustomResourceDefinition\n") {
		t.Error("there are CRDs")
	}
	if text, err = pilotctl("manifest", "--set", "hub=h"); err != nil ||
		!strings.Contains(text, "name: virtualservices.networking.istio.io") {
		t.Error("there are no CRDs:", err)
	}
	if _, err := pilotctl("manifest"); err == nil || !strings.Contains(err.Error(), "hub: expected the registry") {
		t.Error(err)
	}
	if _, err := pilotctl("manifest", "-f", "https://values.example"); err == nil {
		t.Error("values are fetched")
	}
}

// TestVersion has the line of the version.
func TestVersion(t *testing.T) {
	if text, err := pilotctl("version"); err != nil || !strings.HasPrefix(text, "pilotctl ") {
		t.Error(text, err)
	}
}
