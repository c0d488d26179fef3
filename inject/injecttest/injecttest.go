// Package injecttest has the settings that istiod's injector was recorded with, and what tests compare pods by. Tests
// alone import it.
package injecttest

import (
	_ "embed"
	"encoding/json"

	meshconfig "istio.io/api/mesh/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/pilotd/pilotd/ingest"
)

// values are the values of the chart of the installation that was recorded.
//
//go:embed values.json
var values string

// meshText is its mesh configuration.
//
//go:embed mesh.yaml
var meshText string

// T is a test: a testing.TB or a rapid.T.
type T interface {
	Helper()
	Fatal(...any)
}

// Settings returns the chart's values and the mesh configuration of the installation that was recorded.
func Settings(t T) (string, *meshconfig.MeshConfig) {
	t.Helper()
	mesh, err := ingest.ParseMesh(meshText)
	if err != nil {
		t.Fatal(err)
	}
	return values, mesh
}

// Map returns a pod as its JSON says it, so that what is left out and what is empty differ.
func Map(t T, pod *corev1.Pod) map[string]any {
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
