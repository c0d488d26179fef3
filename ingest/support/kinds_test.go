package support

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// served are the custom resources that are read, by the names of their CRDs.
func served() []string {
	return []string{
		"destinationrules.networking.istio.io", "gateways.networking.istio.io", "serviceentries.networking.istio.io",
		"sidecars.networking.istio.io", "virtualservices.networking.istio.io", "workloadentries.networking.istio.io",
	}
}

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
	known := served()
	for _, k := range Kinds() {
		known = append(known, k.CRD())
	}
	found := 0
	for _, m := range regexp.MustCompile(`(?m)^  name: (\S+\.istio\.io)$`).FindAllStringSubmatch(string(text), -1) {
		found++
		if !slices.Contains(known, m[1]) {
			t.Errorf("%s is neither served nor among Kinds", m[1])
		}
	}
	if found < len(served()) {
		t.Errorf("only %d CRDs in the module", found)
	}
}
