package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/e2e/parts"
)

// TestMakeRun starts what `make run` starts, on a copy of the sample mesh, follows the
// instructions that it prints, and ends it.
func TestMakeRun(t *testing.T) {
	mesh := t.TempDir()
	if err := os.CopyFS(mesh, os.DirFS("../examples/mesh")); err != nil {
		t.Fatal(err)
	}
	sample := parts.StartSample(t, mesh, "../examples/mesh-config.yaml")
	routes := filepath.Join(mesh, "routes.yaml")
	printed := sample.LogTail(4000)
	for _, part := range []string{"curl", "Host: echo.example.com", routes} {
		if !strings.Contains(printed, part) {
			t.Errorf("it does not say %q:\n%s", part, printed)
		}
	}
	split := func(n int) (map[string]int, error) {
		counts := make(map[string]int)
		for range n {
			a, err := parts.Ask(http.DefaultClient, "http://127.0.0.1:18000/", "echo.example.com")
			if err != nil {
				return nil, err
			}
			counts[strings.TrimSpace(a.Body)]++
		}
		return counts, nil
	}
	counts, err := split(100)
	if err == nil {
		err = onlyFrom(counts, "echo v1", "echo v2")
	}
	if err != nil || counts["echo v1"] <= counts["echo v2"] {
		t.Errorf("the split: %v: %v", counts, err)
	}
	text, err := os.ReadFile(routes)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.NewReplacer("weight: 75", "weight: 0", "weight: 25", "weight: 100").Replace(string(text))
	if err := os.WriteFile(routes, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	parts.Eventually(t, "the edit is seen", func() error {
		counts, err := split(10)
		if err != nil {
			return err
		}
		return onlyFrom(counts, "echo v2")
	})
	if err := sample.Interrupt(); err != nil {
		t.Errorf("it does not end well: %v", err)
	}
	if _, err := parts.Ask(http.DefaultClient, "http://127.0.0.1:18000/", "echo.example.com"); err == nil {
		t.Error("something still answers after the end")
	}
}
