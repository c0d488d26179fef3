package support_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/ingest"
)

// TestEveryKindIsServedOrReported holds the kinds against the CRDs that Istio's module has: none may be overlooked.
func TestEveryKindIsServedOrReported(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "istio.io/api").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "kubernetes",
		"customresourcedefinitions.gen.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, k := range ingest.Kinds() {
		known = append(known, k.CRD())
	}
	found := 0
	for _, m := range regexp.MustCompile(`(?m)^  name: (\S+\.istio\.io)$`).FindAllStringSubmatch(string(text), -1) {
		found++
		if !slices.Contains(known, m[1]) {
			t.Errorf("%s is not among Kinds", m[1])
		}
	}
	if found < 15 {
		t.Errorf("only %d CRDs in the module", found)
	}
}
